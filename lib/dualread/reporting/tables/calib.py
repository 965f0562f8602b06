"""Reliability out of distribution: accuracy and AUROC over ECE and Brier score, and their mean over all data sets.

Reproduces the layout of the paper's Table calib: the data sets of the layout that are out of distribution, then the
equal-weight mean over all that the study has.
"""

from collections.abc import Mapping

from dualread.reporting.tables import _stacked
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.layout import Layout
from dualread.reporting.tables.values import Key, Value

MEAN = ("ood6", "OOD averaged")


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, from wherever they are."""
    places = [*((dataset.name, dataset.label) for dataset in layout.datasets if not dataset.id), MEAN]
    caption = [
        f"Reliability out of distribution (OOD), study {escape(layout.study)}.",
        f"{MEAN[1]}: equal-weight mean over all OOD data sets, these and the others, per seed.",
    ]
    return _stacked.table("calib", values, layout, places, caption)

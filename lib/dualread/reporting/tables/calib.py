"""Reliability out of distribution: accuracy and AUROC over ECE and Brier score, and their mean over all data sets.

Reproduces the layout of the paper's Table calib: the out-of-distribution data sets of the layout, then the equal-weight
mean over all out-of-distribution data sets of the study.
"""

from collections.abc import Mapping

from dualread.declared.tables import Layout
from dualread.reporting.tables import _stacked
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.values import Key, Value

MEAN = ("ood6", "OOD averaged")


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, ours or the published ones."""
    places = [*((dataset.name, dataset.label) for dataset in layout.datasets if not dataset.id), MEAN]
    caption = [
        f"Reliability out of distribution (OOD), study {escape(layout.study)}.",
        f"{MEAN[1]}: mean with equal weight over all OOD data sets of the study, including those not shown here.",
    ]
    return _stacked.table("calib", values, layout, places, caption)

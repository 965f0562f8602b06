"""Reliability of every method: accuracy and AUROC over ECE and Brier score, one column per data set.

Reproduces the layout of the paper's Table ood_acc for the data sets that the layout lists. Table calib has the others
and the mean over all out-of-distribution data sets.
"""

from collections.abc import Mapping

from dualread.declared.tables import Layout
from dualread.reporting.tables import _stacked
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.values import Key, Value


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, ours or the published ones."""
    places = [(dataset.name, dataset.label) for dataset in layout.datasets]
    labels = ", ".join(escape(label) for _, label in places)
    caption = [f"Reliability on {labels}, study {escape(layout.study)}."]
    return _stacked.table("ood_acc", values, layout, places, caption)

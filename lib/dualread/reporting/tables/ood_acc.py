"""Reliability of every method: accuracy and AUROC over ECE and Brier score, one column per data set.

Reproduces the layout of the paper's Table ood_acc for the data sets that the layout lists. Table calib has the others
and the mean over all out-of-distribution data sets.
"""

from dualread.reporting.tables._stacked import stacked

build = stacked(
    "ood_acc",
    lambda at: at.layout.datasets,
    lambda at: [
        f"Reliability on {', '.join(dataset.label for dataset in at.layout.datasets)}, study {at.layout.study}."
    ],
)

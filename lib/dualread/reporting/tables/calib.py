"""Reliability out of distribution: accuracy and AUROC over ECE and Brier score, and their mean over all data sets.

Reproduces the layout of the paper's Table calib: the out-of-distribution data sets of the layout, then the equal-weight
mean over all out-of-distribution data sets of the study.
"""

from dualread.reporting.tables._sheet import OOD
from dualread.reporting.tables._stacked import stacked

build = stacked(
    "calib",
    lambda at: [*(dataset for dataset in at.layout.datasets if not dataset.id), OOD],
    lambda at: [
        f"Reliability out of distribution (OOD), study {at.layout.study}.",
        f"{OOD.label}: mean with equal weight over all OOD data sets of the study, including those not shown here.",
    ],
)

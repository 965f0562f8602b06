"""Grounding domain by domain: Natural and Strict CCG-AUC of every data set with same-question donors.

Reproduces the layout of the paper's Table ccg_ood (part a of its grounding evidence). It shows the
out-of-distribution data sets of the layout; where there are none, the in-distribution one.
"""

from collections.abc import Mapping

from dualread.declared.tables import Layout
from dualread.reporting.tables._blocks import Column, block, finished, headed, stacked
from dualread.reporting.tables._captions import CCG, SPREAD
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Row, spanning
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.values import Key, Value

_METRICS = {"natural_ccg_auc": r"Nat.$\uparrow$", "strict_ccg_auc": r"Strict$\uparrow$"}


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, ours or the published ones."""
    datasets = [dataset for dataset in layout.datasets if not dataset.id] or [layout.id_dataset]
    columns = [Column(dataset.name, metric) for dataset in datasets for metric in _METRICS]
    blocks = (
        headed(backbone.label, 1 + len(columns), block(values, backbone, layout.methods, columns))
        for backbone in layout.backbones
    )
    return finished(
        "ccg_ood",
        stacked(blocks),
        wide=True,
        columns="l" + "c" * len(columns),
        head=[
            spanning(1, [(escape(dataset.label), len(_METRICS)) for dataset in datasets]),
            Row(["Method", *list(_METRICS.values()) * len(datasets)]),
        ],
        caption=[
            f"CCG-AUC of each data set, Natural (Nat.) and Strict, study {escape(layout.study)}.",
            CCG,
            f"{SPREAD}. Bold: best printed value per column and backbone; nulls are never bold.",
        ],
    )

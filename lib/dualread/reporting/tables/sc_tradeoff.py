r"""Compute against reliability: what sampling many answers gains, and what one replay gains.

Reproduces the layout of the paper's Table sc_tradeoff: one block of rows per backbone and data set, with costs in
the paper's notation. Table costs has the measured costs.
"""

from collections.abc import Mapping

from dualread.declared.tables import LabeledBackbone, LabeledDataset, Layout
from dualread.reporting.tables._blocks import Column, Lines, block, finished, headed, stacked
from dualread.reporting.tables._captions import AURC, SPREAD
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._notation import NOTATION, label_and_cost
from dualread.reporting.tables._structure import Gap, Row
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.values import Key, Value

_METRICS = {"auroc": r"AUROC$\uparrow$", "brier": r"Brier$\downarrow$", "aurc": r"AURC$\downarrow$"}


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, ours or the published ones."""

    def of(backbone: LabeledBackbone, dataset: LabeledDataset) -> Lines:
        columns = [Column(dataset.name, metric) for metric in _METRICS]
        heading = f"{backbone.label}, {'ID' if dataset.id else 'OOD'}: {dataset.label}"
        lines = block(values, backbone, layout.methods, columns, labels=label_and_cost)
        return headed(heading, 2 + len(columns), lines)

    blocks = (
        stacked((of(backbone, dataset) for dataset in layout.datasets), Gap.SPACE) for backbone in layout.backbones
    )
    return finished(
        "sc_tradeoff",
        stacked(blocks),
        wide=False,
        columns="ll" + "c" * len(_METRICS),
        head=[Row(["Method", "Cost", *_METRICS.values()])],
        caption=[
            f"Compute and reliability, study {escape(layout.study)}.",
            NOTATION,
            f"{AURC} ID and OOD: in and out of distribution.",
            f"{SPREAD}. Bold: best printed value per column and block.",
        ],
    )

"""Reliability by answer type: calibration and selective prediction on open and on closed questions.

Reproduces the layout of the paper's Table reliability for the data sets and methods that the layout lists.
"""

from collections.abc import Mapping

from dualread.declared.tables import LabeledBackbone, Layout
from dualread.reporting.tables._blocks import Column, Lines, block, finished, headed, stacked
from dualread.reporting.tables._captions import AURC, ECE, HCE, SPREAD
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Beside, Gap, Row
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.values import Key, Value

_SUBSETS = {"open": "Open questions", "closed": "Closed questions"}
_METRICS = {
    "accuracy": r"Acc$\uparrow$",
    "auroc": r"AUROC$\uparrow$",
    "ece15": r"ECE$\downarrow$",
    "brier": r"Brier$\downarrow$",
    "aurc": r"AURC$\downarrow$",
    "hce90": r"HCE@.9$\downarrow$",
}


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, ours or the published ones."""
    blocks = (
        headed(
            heading,
            3 + len(_METRICS),
            stacked((_of_backbone(values, layout, backbone, subset) for backbone in layout.backbones), Gap.SPACE),
        )
        for subset, heading in _SUBSETS.items()
    )
    return finished(
        "reliability",
        stacked(blocks),
        wide=True,
        columns="lll" + "r" * len(_METRICS),
        head=[Row(["Backbone", "Dataset", "Method", *_METRICS.values()])],
        caption=[
            f"Reliability by answer type, study {escape(layout.study)}.",
            f"{ECE} {AURC} {HCE}",
            f"{SPREAD}. Bold: best printed value per data set and backbone; accuracy is never bold.",
        ],
    )


def _of_backbone(values: Mapping[Key, Value], layout: Layout, backbone: LabeledBackbone, subset: str) -> Lines:
    """Return one block per data set, and the backbone's label beside all of them."""
    lines = stacked(
        (
            block(
                values,
                backbone,
                layout.methods,
                [Column(dataset.name, metric, subset) for metric in _METRICS],
                beside=["", escape(dataset.label)],
            )
            for dataset in layout.datasets
        ),
        Gap.SMALL_SPACE,
    )
    first, *others = lines.lines
    assert isinstance(first, Row)
    label = Beside(escape(backbone.label), len(layout.datasets) * len(layout.methods))
    return Lines([Row([label, *first.cells[1:]]), *others], lines.cells)

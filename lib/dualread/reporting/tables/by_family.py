"""Reliability by content family: organs, positions, abnormalities, ... of the in-distribution test set.

Not in the paper. The families are those that the data set records. Each family has a block with one row per method.
Table families counts the questions of every data set.
"""

from collections.abc import Mapping

from dualread.declared.tables import LabeledBackbone, Layout
from dualread.evaluation.families import PREFIX
from dualread.reporting.tables._blocks import Column, Lines, block, finished, headed, stacked
from dualread.reporting.tables._captions import ECE, SPREAD
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Gap, Row
from dualread.reporting.tables.cells import Table, size_of
from dualread.reporting.tables.values import Key, Value

_METRICS = {
    "accuracy": r"Acc$\uparrow$",
    "auroc": r"AUROC$\uparrow$",
    "ece15": r"ECE$\downarrow$",
    "brier": r"Brier$\downarrow$",
}


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, ours or the published ones."""
    dataset = layout.id_dataset
    subsets = sorted({key.subset for key in values if key.dataset == dataset.name and key.subset.startswith(PREFIX)})
    blocks = (
        headed(
            backbone.label,
            3 + len(_METRICS),
            stacked((_family(values, layout, backbone, subset) for subset in subsets), Gap.SMALL_SPACE),
        )
        for backbone in layout.backbones
    )
    return finished(
        "by_family",
        stacked(blocks),
        wide=True,
        columns="lrl" + "c" * len(_METRICS),
        head=[Row(["Family", "$n$", "Method", *_METRICS.values()])],
        caption=[
            f"Reliability on {escape(dataset.label)} by content family, study {escape(layout.study)}; $n$: number of "
            "questions.",
            ECE,
            f"{SPREAD}. Bold: best printed value per family and backbone; accuracy is never bold.",
            *([] if subsets else ["The data set records no families."]),
        ],
    )


def _family(values: Mapping[Key, Value], layout: Layout, backbone: LabeledBackbone, subset: str) -> Lines:
    columns = [Column(layout.id_dataset.name, metric, subset) for metric in _METRICS]
    place = (backbone.name, layout.id_dataset.name, subset)
    n = size_of(values, (Key(*place, method.name, metric) for method in layout.methods for metric in _METRICS))
    beside = [escape(subset.removeprefix(PREFIX)), str(n or "")]
    return block(values, backbone, layout.methods, columns, beside=beside)

"""Reliability by content family: organs, positions, abnormalities, ... of the in-distribution test set.

Not in the paper. The families are those that the data set records. Each family has a block with one row per method.
Table families counts the questions of every data set.
"""

from dualread.evaluation.answer_metrics import ACCURACY, AUROC, BRIER, ECE
from dualread.evaluation.conditions import FAMILY_PREFIX
from dualread.evaluation.explained import CAPTIONS
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.cells import size_of
from dualread.reporting.tables.entries import Gap

_METRICS = {ACCURACY: "Acc", **dict.fromkeys((AUROC, ECE, BRIER))}


def _size(at: sheet.RowContext) -> str:
    keys = (at.key._replace(method=method.name, metric=metric.name) for method in at.methods for metric in _METRICS)
    return str(size_of(at.values, keys) or "")


def _caption(at: sheet.RowContext) -> list[str]:
    return [
        f"Reliability on {at.dataset.label} by content family, study {at.layout.study}; 𝑛: number of questions.",
        CAPTIONS[ECE.name],
        f"{sheet.SPREAD}. Bold: best printed value per family and backbone; accuracy is never bold.",
        *([] if any(sheet.families(at)) else ["The data set records no families."]),
    ]


build = sheet.Sheet(
    name="by_family",
    rows=[
        sheet.BACKBONES,
        sheet.RowLevel(
            sheet.families,
            [sheet.Label("Family", lambda at: at.subset.removeprefix(FAMILY_PREFIX)), sheet.Label("𝑛", _size, "r")],
            gap=Gap.SMALL_SPACE,
        ),
        sheet.METHODS,
    ],
    columns=lambda at: sheet.columns_here(_METRICS),
    caption=_caption,
)

"""Robustness: what accuracy and confidence become under the conditions of a study that are none of the paper's.

Not in the paper. No image, black images, distortions of several strengths, other prompts: each condition has a block
with one row per method. One float per backbone, since together they would not fit a page. A confidence that does not
fall with the accuracy is one that does not notice.
"""

from collections.abc import Iterator
from dataclasses import replace

from dualread.evaluation.conditions import (
    ACCURACY,
    ACCURACY_DROP,
    AUROC,
    BRIER,
    CCG_AUC,
    CONFIDENCE,
    CONFIDENCE_DROP,
    PREFIX,
)
from dualread.evaluation.metric import Metric
from dualread.evaluation.side_by_side import ORIGINAL
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.cells import Cell, compared_cell, mean_cell
from dualread.reporting.tables.entries import DITTO, Gap
from dualread.reporting.tables.values import Key

_OF_TWO = (ACCURACY_DROP, CONFIDENCE_DROP, CCG_AUC)  # which compare a condition with the original


def _conditions(at: sheet.RowContext) -> Iterator[sheet.RowContext]:
    """Yield the conditions of the data set, the original first."""
    subsets = {key.subset for key in at.values if key.dataset == at.dataset.name and key.subset.startswith(PREFIX)}
    for subset in sorted(subsets, key=lambda subset: (subset != f"{PREFIX}{ORIGINAL}", subset)):
        yield replace(at, subset=subset)


def _cell(at: sheet.RowContext, metric: Metric, key: Key) -> Cell | None:
    if metric in _OF_TWO and at.subset == f"{PREFIX}{ORIGINAL}":
        return None
    cell = compared_cell(metric, key, at.values, at.layout.methods)
    return mean_cell(metric, key, cell.value) if cell.value.short else cell


def _caption(at: sheet.RowContext) -> list[str]:
    return [
        f"Robustness for {at.backbone.label}, study {at.layout.study}: answers and confidences under other conditions.",
        "Acc.: accuracy there; Conf.: mean confidence; drop: how far each is below its value on the original images, "
        "on the same questions. CCG-AUC: how often confidence is higher on the original image where only the answer on "
        "the original image is correct; ties count one half: .500 means no response.",
        "Changed images are in no distribution that a model was trained on, so that a confidence may also fall because "
        "they look strange.",
        f"{DITTO}: the same answers as in the row above.",
        f"{sheet.SPREAD}. Bold: best printed value per column and block; never accuracy, nulls, or values with a "
        "dagger.",
        *([] if any(_conditions(at)) else ["The study has no such conditions."]),
    ]


build = sheet.Sheet(
    name="robustness",
    floats=sheet.backbones,
    label=lambda at: at.backbone.name,
    rows=[
        sheet.DATASETS,
        sheet.RowLevel(
            _conditions,
            [sheet.Label("Condition", lambda at: at.subset.removeprefix(PREFIX).replace("_", " "))],
            gap=Gap.SMALL_SPACE,
        ),
        sheet.METHODS,
    ],
    columns=lambda at: sheet.columns_here(
        [ACCURACY, ACCURACY_DROP, CONFIDENCE, CONFIDENCE_DROP, AUROC, BRIER, CCG_AUC]
    ),
    caption=_caption,
    shared=[ACCURACY, ACCURACY_DROP],
    cell=_cell,
)

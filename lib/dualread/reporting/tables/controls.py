"""Controls of grounding: the same answer on the donor image, and a new answer on a shuffled image.

The paper names these controls ("Fixed-prefix and strict-same-answer controls", "shuffled-image variants") and prints no
table of them. One float per backbone, since together they would not fit a page; one block of rows per data set.
"""

from dualread.evaluation.controls import (
    FIXED_PREFIX_CCG_AUC,
    SHUFFLED_ACCURACY,
    SHUFFLED_ACCURACY_DROP,
    SHUFFLED_AUROC,
    SHUFFLED_CCG_AUC,
    STRICT_SAME_ANSWER_CCG_AUC,
)
from dualread.evaluation.pair_metrics import STRICT_CCG_AUC
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.entries import DITTO

_DONOR = [STRICT_CCG_AUC, STRICT_SAME_ANSWER_CCG_AUC, FIXED_PREFIX_CCG_AUC]
_SHUFFLED = [SHUFFLED_ACCURACY, SHUFFLED_ACCURACY_DROP, SHUFFLED_AUROC, SHUFFLED_CCG_AUC]


def _caption(at: sheet.RowContext) -> list[str]:
    return [
        f"Controls of grounding for {at.backbone.label}, study {at.layout.study}.",
        "Strict: decisive pairs in which the actor gives the source's answer on the donor image too.",
        "Same answer: the same pairs, with the source's completion forced on the donor image.",
        "Fixed prefix: that completion forced on every pair for which it is correct on the source image and incorrect "
        "on the donor image. A verbalized confidence is part of the completion, so it cannot fall.",
        "Shuffled image: each question answered again, on another image, and graded against its own "
        "reference answer. Acc.: accuracy there; Drop: how far it is below the accuracy on the original images; AUROC: "
        "of the new answers; CCG-AUC: how often confidence is higher on the original image, where only the answer on "
        "the original image is correct.",
        f"{DITTO}: the same answers as in the row above.",
        f"{sheet.SPREAD}. Bold: best printed value per column and block; accuracy and nulls are never bold. Ties count "
        "one half: .500 means no response.",
    ]


build = sheet.Sheet(
    name="controls",
    floats=sheet.backbones,
    label=lambda at: at.backbone.name,
    rows=[sheet.DATASETS, sheet.METHODS],
    columns=lambda at: [
        *sheet.columns_here(_DONOR, "CCG-AUC, donor image"),
        *sheet.columns_here(_SHUFFLED, "Shuffled image"),
    ],
    caption=_caption,
    shared=[SHUFFLED_ACCURACY, SHUFFLED_ACCURACY_DROP],
)

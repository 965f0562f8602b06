"""Controls of grounding: the same answer on the donor image, and a new answer on a shuffled image.

The paper names these controls ("Fixed-prefix and strict-same-answer controls", "shuffled-image variants") and prints no
table of them. One float per backbone, since together they would not fit a page; one block of rows per data set.
"""

from dualread.reporting.tables._captions import SPREAD
from dualread.reporting.tables._latex import DITTO, escape
from dualread.reporting.tables._sheet import METHODS, At, By, Column, Sheet, backbones, column, datasets
from dualread.reporting.tables._structure import Gap

_HEADS = {
    "CCG-AUC, donor image": {
        "strict_ccg_auc": r"Strict$\uparrow$",
        "strict_same_answer_ccg_auc": r"Same answer$\uparrow$",
        "fixed_prefix_ccg_auc": r"Fixed prefix$\uparrow$",
    },
    "Shuffled image": {
        "shuffled_accuracy": "Acc.",
        "shuffled_accuracy_drop": "Drop",
        "shuffled_auroc": r"AUROC$\uparrow$",
        "shuffled_ccg_auc": r"CCG-AUC$\uparrow$",
    },
}


def _columns(at: At) -> list[Column]:
    return [column(head, title, metric=metric) for title, heads in _HEADS.items() for metric, head in heads.items()]


def _caption(at: At) -> list[str]:
    return [
        f"Controls of grounding for {escape(at.backbone.label)}, study {escape(at.layout.study)}.",
        "Strict: decisive pairs in which the actor gives the source's answer on the donor image too.",
        "Same answer: the same pairs, with the source's completion forced on the donor image.",
        "Fixed prefix: that completion forced on every pair for which it is correct on the source image and incorrect "
        "on the donor image. A verbalized confidence is part of the completion, so it cannot fall.",
        "Shuffled image: each question answered again, on another image, and graded against its own "
        "reference answer. Acc.: accuracy there; Drop: how far it is below the accuracy on the original images; AUROC: "
        "of the new answers; CCG-AUC: how often confidence is higher on the original image, where only the answer on "
        "the original image is correct.",
        f"{DITTO}: the same answers as in the row above.",
        f"{SPREAD}. Bold: best printed value per column and block; accuracy and nulls are never bold. Ties count one "
        "half: .500 means no response.",
    ]


build = Sheet(
    name="controls",
    floats=backbones,
    label=lambda at: at.backbone.name,
    rows=[
        By(datasets, heading=lambda at: f"{at.backbone.label}, {at.dataset.label}", gap=Gap.SPACE),
        METHODS,
    ],
    columns=_columns,
    caption=_caption,
    shared=["shuffled_accuracy", "shuffled_accuracy_drop"],
)

"""Controls of grounding: the same answer on the donor image, and a new answer on a shuffled image.

The paper names these controls ("Fixed-prefix and strict-same-answer controls", "shuffled-image variants") and prints no
table of them. One float per backbone, since together they would not fit a page; one block of rows per data set.
"""

from collections.abc import Mapping

import polars as pl

from dualread.declared.tables import LabeledBackbone, Layout
from dualread.reporting.tables._blocks import Column, block, finished, headed, stacked
from dualread.reporting.tables._captions import SPREAD
from dualread.reporting.tables._latex import DITTO, escape
from dualread.reporting.tables._structure import Gap, Row, spanning
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.values import Key, Value

_FIXED = {
    "strict_ccg_auc": r"Strict$\uparrow$",
    "strict_same_answer_ccg_auc": r"Same answer$\uparrow$",
    "fixed_prefix_ccg_auc": r"Fixed prefix$\uparrow$",
}
_SHUFFLED = {
    "shuffled_accuracy": "Acc.",
    "shuffled_accuracy_drop": "Drop",
    "shuffled_auroc": r"AUROC$\uparrow$",
    "shuffled_ccg_auc": r"CCG-AUC$\uparrow$",
}
_OF_THE_ACTOR = ("shuffled_accuracy", "shuffled_accuracy_drop")


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of controls of `values`, ours or the published ones.

    Raises:
        ArtifactError: Methods of one actor do not have one accuracy on shuffled images.
    """
    floats = [_of_backbone(values, layout, backbone) for backbone in layout.backbones]
    return Table(
        floats=[part for found in floats for part in found.floats], cells=pl.concat(found.cells for found in floats)
    )


def _of_backbone(values: Mapping[Key, Value], layout: Layout, backbone: LabeledBackbone) -> Table:
    metrics = {**_FIXED, **_SHUFFLED}
    blocks = (
        headed(
            f"{backbone.label}, {dataset.label}",
            1 + len(metrics),
            block(
                values,
                backbone,
                layout.methods,
                [Column(dataset.name, metric) for metric in metrics],
                shared=_OF_THE_ACTOR,
            ),
        )
        for dataset in layout.datasets
    )
    return finished(
        "controls",
        stacked(blocks, Gap.SPACE),
        wide=True,
        columns="l" + "c" * len(metrics),
        head=[
            spanning(1, [("CCG-AUC, donor image", len(_FIXED)), ("Shuffled image", len(_SHUFFLED))]),
            Row(["Method", *metrics.values()]),
        ],
        caption=_caption(layout, backbone),
        label=f"controls:{backbone.name}",
    )


def _caption(layout: Layout, backbone: LabeledBackbone) -> list[str]:
    return [
        f"Controls of grounding for {escape(backbone.label)}, study {escape(layout.study)}.",
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

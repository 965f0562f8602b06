"""Controls of grounding: the same answer on the donor's image, and a new answer on a shuffled one.

The paper names these controls ("Fixed-prefix and strict-same-answer controls", "shuffled-image variants") and prints no
table of them. One float a backbone, since they would not fit a page together; one block of rows a data set.
"""

from collections.abc import Mapping

import polars as pl

from dualread.reporting.tables._blocks import Column, block, finished, headed, stacked
from dualread.reporting.tables._captions import SPREAD
from dualread.reporting.tables._latex import DITTO, escape
from dualread.reporting.tables._structure import Gap, Row, spanning
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.layout import Backbone, Layout
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
    """Return the table of controls of `values`, from wherever they are.

    Raises:
        ArtifactError: Methods of one actor do not have one accuracy on shuffled images.
    """
    floats = [_of_backbone(values, layout, backbone) for backbone in layout.backbones]
    return Table(
        floats=[part for found in floats for part in found.floats], cells=pl.concat(found.cells for found in floats)
    )


def _of_backbone(values: Mapping[Key, Value], layout: Layout, backbone: Backbone) -> Table:
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


def _caption(layout: Layout, backbone: Backbone) -> list[str]:
    return [
        f"Controls of grounding for {escape(backbone.label)}, study {escape(layout.study)}.",
        "Strict: the actor gives the source's answer on the donor image by itself.",
        "Same answer: the same pairs, with the source's completion forced on the donor image.",
        "Fixed prefix: that completion on every pair whose source answer is right there and wrong on the donor image; "
        "a stated confidence is a part of it, so that it cannot fall.",
        "Shuffled image: answered anew on another image and judged against the question's own gold; its accuracy, "
        "what was lost of the accuracy on the own images, the AUROC there, and how often the own image has more "
        "confidence where it alone is answered rightly.",
        f"{DITTO}: the same answers as in the row above.",
        f"{SPREAD}; bold: best printed value of a column within a block, except accuracy and the group of nulls. Ties "
        "count one half: .500 is no response.",
    ]

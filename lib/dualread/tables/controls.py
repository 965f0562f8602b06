"""Controls of grounding: the same answer on the donor's image, and a new answer on a shuffled one.

The paper names these controls ("Fixed-prefix and strict-same-answer controls", "shuffled-image variants") and prints no
table of them. One block of rows for every backbone and data set.
"""

from collections.abc import Mapping

import polars as pl

from dualread.tables._cells import Cell, Table, column_cells, column_texts, csv_rows, notes
from dualread.tables._latex import block_heading, escape, float_table, row
from dualread.tables._layout import Layout
from dualread.tables._values import Key, Value, summarize

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
N_COLUMNS = 1 + len(_FIXED) + len(_SHUFFLED)


def build(metrics: pl.DataFrame, layout: Mapping) -> Table:
    """Return the table of controls of the study that `metrics` (a collected metrics table) is of.

    Raises:
        ConfigError: `layout` is malformed.
        ArtifactError: Methods of one actor do not have one accuracy on shuffled images.
    """
    parsed = Layout.parse(layout)
    return render(summarize(metrics, seeds=parsed.seeds), parsed)


def render(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of controls of `values`, from wherever they are."""
    body: list[str] = []
    printed: list[Cell] = []
    for backbone in layout.backbones:
        for dataset in layout.datasets:
            of_column = []
            for metric in (*_FIXED, *_SHUFFLED):
                cells = column_cells(
                    values, backbone=backbone.name, dataset=dataset.name, metric=metric, methods=layout.methods
                )
                of_column.append(column_texts(cells, layout.methods, shared=metric in _OF_THE_ACTOR))
            heading = block_heading(f"{backbone.label}, {dataset.label}", N_COLUMNS)
            body += [*([r"\addlinespace[2pt]"] if body else []), heading]
            for method in layout.methods:
                body.append(row([escape(method.label), *(column[method.name][1] for column in of_column)]))
                printed += [cell for column in of_column for cell in column[method.name][0]]
    return Table(
        tex=float_table(
            name="controls",
            wide=True,
            columns="l" + "c" * (N_COLUMNS - 1),
            head=_head(),
            body=body,
            caption=" ".join([*_caption(layout), *notes(printed, "controls")]),
        ),
        cells=csv_rows("controls", printed),
    )


def _head() -> list[str]:
    last = 1 + len(_FIXED)
    titles = [(len(_FIXED), "CCG-AUC, donor image"), (len(_SHUFFLED), "Shuffled image")]
    return [
        row(["", *(rf"\multicolumn{{{width}}}{{c}}{{{title}}}" for width, title in titles)]),
        rf"\cmidrule(lr){{2-{last}}}\cmidrule(l){{{last + 1}-{N_COLUMNS}}}",
        row(["Method", *_FIXED.values(), *_SHUFFLED.values()]),
    ]


def _caption(layout: Layout) -> list[str]:
    return [
        f"Controls of grounding, study {escape(layout.study)}.",
        "Strict: the actor gives the source's answer on the donor image by itself.",
        "Same answer: the same pairs, with the source's completion forced on the donor image.",
        "Fixed prefix: that completion on every pair whose source answer is right there and wrong on the donor image.",
        "Shuffled image: answered anew on another image and judged against the question's own gold; its accuracy, "
        "what was lost of the accuracy on the own images, the AUROC there, and how often the own image has more "
        "confidence where it alone is answered rightly.",
        "Mean over seeds, with the sample standard deviation as subscript where there are several; bold: best printed "
        "value of a column within a block, except accuracy and the group of nulls. Ties count one half: .500 is no "
        "response.",
    ]

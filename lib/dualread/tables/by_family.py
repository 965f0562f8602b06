"""Reliability by content family: organs, positions, abnormalities, ... of the in-distribution test set.

Not in the paper. The families are those that the data set records; a family has a block of rows, one a method.
"""

from collections.abc import Mapping

import polars as pl

from dualread.evaluation.families import PREFIX
from dualread.tables._cells import Cell, Table, column_cells, csv_rows, notes
from dualread.tables._latex import block_heading, escape, float_table, multirow, row
from dualread.tables._layout import Backbone, Layout
from dualread.tables._values import Key, Value, summarize

_METRICS = {
    "accuracy": r"Acc$\uparrow$",
    "auroc": r"AUROC$\uparrow$",
    "ece15": r"ECE$\downarrow$",
    "brier": r"Brier$\downarrow$",
}
N_COLUMNS = 3 + len(_METRICS)


def build(metrics: pl.DataFrame, layout: Mapping) -> Table:
    """Return the table of the study that `metrics` (a collected metrics table) is of.

    Raises:
        ConfigError: `layout` is malformed.
    """
    parsed = Layout.parse(layout)
    return render(summarize(metrics, seeds=parsed.seeds), parsed)


def render(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, from wherever they are."""
    dataset = layout.id_dataset.name
    subsets = sorted({key.subset for key in values if key.dataset == dataset and key.subset.startswith(PREFIX)})
    body: list[str] = []
    printed: list[Cell] = []
    for backbone in layout.backbones:
        body += [*([r"\midrule"] if body else []), block_heading(backbone.label, N_COLUMNS)]
        for k, subset in enumerate(subsets):
            lines, cells = _family(values, layout, backbone, subset)
            body += [*([r"\addlinespace[1pt]"] if k else []), *lines]
            printed += cells
    caption = [
        f"Reliability on {escape(layout.id_dataset.label)} by content family, study {escape(layout.study)}; $n$ "
        "questions each.",
        "Mean over seeds, with the sample standard deviation as subscript where there are several; bold: best printed "
        "value of a family within a backbone, except accuracy.",
        *([] if subsets else ["The data set records no families."]),
        *notes(printed, "by_family"),
    ]
    return Table(
        tex=float_table(
            name="by_family",
            wide=True,
            columns="lrl" + "c" * len(_METRICS),
            head=[row(["Family", "$n$", "Method", *_METRICS.values()])],
            body=body,
            caption=" ".join(caption),
        ),
        cells=csv_rows("by_family", printed),
    )


def _family(
    values: Mapping[Key, Value], layout: Layout, backbone: Backbone, subset: str
) -> tuple[list[str], list[Cell]]:
    columns = [
        column_cells(
            values,
            backbone=backbone.name,
            dataset=layout.id_dataset.name,
            metric=metric,
            methods=layout.methods,
            subset=subset,
        )
        for metric in _METRICS
    ]
    sizes = {cell.value.n for column in columns for cell in column.values()} - {None}
    beside = [escape(subset.removeprefix(PREFIX)), str(*sizes) if len(sizes) == 1 else ""]
    lines, printed = [], []
    for k, method in enumerate(layout.methods):
        cells = [column[method.name] for column in columns]
        first = [multirow(len(layout.methods), text) for text in beside] if k == 0 else ["", ""]
        lines.append(row([*first, escape(method.label), *(cell.tex for cell in cells)]))
        printed += cells
    return lines, printed

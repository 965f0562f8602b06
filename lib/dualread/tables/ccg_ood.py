"""Grounding domain by domain: Natural and Strict CCG-AUC of every data set with same-question donors.

Reproduces the layout of the paper's Table ccg_ood (part a of its grounding evidence). It shows the data sets of the
layout that are out of distribution, and the in-distribution one where there are no others.
"""

from collections.abc import Mapping

import polars as pl

from dualread.tables._cells import Cell, Table, column_cells, csv_rows, notes
from dualread.tables._latex import block_heading, escape, float_table, row
from dualread.tables._layout import Dataset, Layout
from dualread.tables._values import Key, Value, summarize

_METRICS = {"natural_ccg_auc": r"Nat.$\uparrow$", "strict_ccg_auc": r"Strict$\uparrow$"}


def build(metrics: pl.DataFrame, layout: Mapping) -> Table:
    """Return the table of the study that `metrics` (a collected metrics table) is of.

    Raises:
        ConfigError: `layout` is malformed.
    """
    parsed = Layout.parse(layout)
    return render(summarize(metrics, seeds=parsed.seeds), parsed)


def render(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, from wherever they are."""
    datasets = [dataset for dataset in layout.datasets if not dataset.id] or [layout.id_dataset]
    body: list[str] = []
    printed: list[Cell] = []
    for backbone in layout.backbones:
        columns = [
            column_cells(values, backbone=backbone.name, dataset=dataset.name, metric=metric, methods=layout.methods)
            for dataset in datasets
            for metric in _METRICS
        ]
        body += [*([r"\midrule"] if body else []), block_heading(backbone.label, 1 + len(columns))]
        for method in layout.methods:
            cells = [column[method.name] for column in columns]
            body.append(row([escape(method.label), *(cell.tex for cell in cells)]))
            printed += cells
    caption = [
        f"CCG-AUC of each data set, Natural and Strict, study {escape(layout.study)}.",
        "Mean over seeds, with the sample standard deviation as subscript where there are several; bold: best printed "
        "value of a column within a backbone, nulls apart. Ties count one half: .500 is no response.",
        *notes(printed, "ccg_ood"),
    ]
    return Table(
        tex=float_table(
            name="ccg_ood",
            wide=True,
            columns="l" + "c" * len(_METRICS) * len(datasets),
            head=_head(datasets),
            body=body,
            caption=" ".join(caption),
        ),
        cells=csv_rows("ccg_ood", printed),
    )


def _head(datasets: list[Dataset]) -> list[str]:
    n = len(_METRICS)
    rules = [rf"\cmidrule(lr){{{2 + n * k}-{1 + n * (k + 1)}}}" for k in range(len(datasets))]
    return [
        row(["", *(rf"\multicolumn{{{n}}}{{c}}{{{escape(dataset.label)}}}" for dataset in datasets)]),
        "".join(rules),
        row(["Method", *list(_METRICS.values()) * len(datasets)]),
    ]

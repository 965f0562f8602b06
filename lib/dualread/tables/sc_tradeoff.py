r"""Compute against reliability: what sampling buys, and what one replay does.

Reproduces the layout of the paper's Table sc_tradeoff: a block of rows for every backbone and data set, with costs in
the paper's notation. Table costs has what was measured.
"""

from collections.abc import Mapping

import polars as pl

from dualread.tables._cells import Cell, Table, column_cells, csv_rows, notes
from dualread.tables._format import DASH
from dualread.tables._latex import block_heading, escape, float_table, row
from dualread.tables._layout import Layout
from dualread.tables._values import Key, Value, summarize

_METRICS = {"auroc": r"AUROC$\uparrow$", "brier": r"Brier$\downarrow$", "aurc": r"AURC$\downarrow$"}
N_COLUMNS = 2 + len(_METRICS)


def build(metrics: pl.DataFrame, layout: Mapping) -> Table:
    """Return the table of the study that `metrics` (a collected metrics table) is of.

    Raises:
        ConfigError: `layout` is malformed.
    """
    parsed = Layout.parse(layout)
    return render(summarize(metrics, seeds=parsed.seeds), parsed)


def render(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, from wherever they are."""
    body: list[str] = []
    printed: list[Cell] = []
    for backbone in layout.backbones:
        for k, dataset in enumerate(layout.datasets):
            columns = [
                column_cells(
                    values, backbone=backbone.name, dataset=dataset.name, metric=metric, methods=layout.methods
                )
                for metric in _METRICS
            ]
            space = [r"\addlinespace[2pt]" if k else r"\midrule"] if body else []
            heading = f"{backbone.label}, {'ID' if dataset.id else 'OOD'}: {dataset.label}"
            body += [*space, block_heading(heading, N_COLUMNS)]
            for method in layout.methods:
                cells = [column[method.name] for column in columns]
                body.append(row([escape(method.label), method.cost or DASH, *(cell.tex for cell in cells)]))
                printed += cells
    caption = [
        f"Compute and reliability, study {escape(layout.study)}.",
        r"Cost in the paper's notation: $t$ is one generated answer, $\rho$ one pass over a prompt alone, $\tau$ one "
        "replay of prompt and answer.",
        "Mean over seeds, with the sample standard deviation as subscript where there are several; bold: best printed "
        "value within a block.",
        *notes(printed, "sc_tradeoff"),
    ]
    return Table(
        tex=float_table(
            name="sc_tradeoff",
            wide=False,
            columns="ll" + "c" * len(_METRICS),
            head=[row(["Method", "Cost", *_METRICS.values()])],
            body=body,
            caption=" ".join(caption),
        ),
        cells=csv_rows("sc_tradeoff", printed),
    )

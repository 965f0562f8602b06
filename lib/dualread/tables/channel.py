"""The confidence channel: how often a method states a valid value, and how many different ones.

Reproduces the layout of the paper's Table channel: of the seeds that the table's entry names, parse rates on every data
set of the layout and the support of the valid values on the in-distribution one.
"""

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from dualread.tables._cells import Cell, Table, column_cells, csv_rows, notes
from dualread.tables._latex import escape, float_table, multirow, row
from dualread.tables._layout import Layout
from dualread.tables._values import Key, Value, summarize

_RATE = "parse_rate"
# Metric, header, decimals.
_SUPPORT = (("unique_confidences", "Unique", 0), ("endpoint_share", "Endpt.", 3))


def build(metrics: pl.DataFrame, layout: Mapping) -> Table:
    """Return the table of the study that `metrics` (a collected metrics table) is of.

    Raises:
        ConfigError: `layout` is malformed.
    """
    parsed = Layout.parse(layout)
    values = summarize(metrics, seeds=parsed.seeds)
    rates = {
        key._replace(metric=_RATE): value if value.mean is None else replace(value, mean=1 - value.mean)
        for key, value in values.items()
        if key.metric == "imputed_share"
    }
    return render(values | rates, parsed)


def render(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, from wherever they are."""
    columns = [(dataset.name, _RATE, 3) for dataset in layout.datasets]
    columns += [(layout.id_dataset.name, metric, digits) for metric, _, digits in _SUPPORT]
    body: list[str] = []
    printed: list[Cell] = []
    for backbone in layout.backbones:
        of_column = [
            column_cells(
                values, backbone=backbone.name, dataset=dataset, metric=metric, methods=layout.methods, digits=digits
            )
            for dataset, metric, digits in columns
        ]
        body += [r"\midrule"] if body else []
        for k, method in enumerate(layout.methods):
            cells = [column[method.name] for column in of_column]
            beside = multirow(len(layout.methods), escape(backbone.label)) if k == 0 else ""
            body.append(row([beside, escape(method.label), *(cell.tex for cell in cells)]))
            printed += cells
    return Table(
        tex=float_table(
            name="channel",
            wide=False,
            columns="ll" + "r" * len(columns),
            head=_head(layout),
            body=body,
            caption=" ".join([*_caption(layout), *notes(printed, "channel")]),
        ),
        cells=csv_rows("channel", printed),
    )


def _head(layout: Layout) -> list[str]:
    n, last = len(layout.datasets), 2 + len(layout.datasets) + len(_SUPPORT)
    return [
        row(["", "", rf"\multicolumn{{{n}}}{{c}}{{Parse rate}}", rf"\multicolumn{{{len(_SUPPORT)}}}{{c}}{{Support}}"]),
        rf"\cmidrule(lr){{3-{2 + n}}}\cmidrule(lr){{{3 + n}-{last}}}",
        row(["Backbone", "Method", *(escape(d.label) for d in layout.datasets), *(name for _, name, _ in _SUPPORT)]),
    ]


def _caption(layout: Layout) -> list[str]:
    seeds = sorted({seed for backbone in layout.backbones for seed in backbone.seeds})
    return [
        f"Confidence channels, study {escape(layout.study)}, seed{'s' if len(seeds) > 1 else ''} "
        f"{', '.join(map(str, seeds))}.",
        "Parse rate: share of answers with a valid confidence.",
        f"Support on {escape(layout.id_dataset.label)}, of valid values only: how many different ones, and the share "
        "that is exactly 0 or 1.",
    ]

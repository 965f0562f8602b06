"""Reliability by answer type: calibration and selective prediction on open and on closed questions.

Reproduces the layout of the paper's Table reliability for the data sets and methods that the layout lists.
"""

from collections.abc import Mapping

import polars as pl

from dualread.tables._cells import Cell, Table, column_cells, csv_rows, notes
from dualread.tables._latex import block_heading, escape, float_table, multirow, row
from dualread.tables._layout import Backbone, Dataset, Layout
from dualread.tables._values import Key, Value, summarize

_SUBSETS = {"open": "Open questions", "closed": "Closed questions"}
_METRICS = {
    "accuracy": r"Acc$\uparrow$",
    "auroc": r"AUROC$\uparrow$",
    "ece15": r"ECE$\downarrow$",
    "brier": r"Brier$\downarrow$",
    "aurc": r"AURC$\downarrow$",
    "hce90": r"HCE@.9$\downarrow$",
}


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
    for subset, heading in _SUBSETS.items():
        body += [*([r"\midrule"] if body else []), block_heading(heading, 3 + len(_METRICS))]
        for b, backbone in enumerate(layout.backbones):
            body += [r"\addlinespace[2pt]"] if b else []
            for d, dataset in enumerate(layout.datasets):
                lines, cells = _block(values, layout, backbone, dataset, subset)
                beside = escape(backbone.label) if d == 0 else ""
                n_rows = len(layout.datasets) * len(layout.methods)
                lines[0] = f"{multirow(n_rows, beside) if beside else ''}{lines[0]}"
                body += [*([r"\addlinespace[1pt]"] if d else []), *lines]
                printed += cells
    caption = [
        f"Reliability by answer type, study {escape(layout.study)}.",
        "Mean over seeds, with the sample standard deviation as subscript where there are several; bold: best printed "
        "value of a data set within a backbone, except accuracy.",
        *notes(printed, "reliability"),
    ]
    return Table(
        tex=float_table(
            name="reliability",
            wide=True,
            columns="lll" + "r" * len(_METRICS),
            head=[row(["Backbone", "Dataset", "Method", *_METRICS.values()])],
            body=body,
            caption=" ".join(caption),
        ),
        cells=csv_rows("reliability", printed),
    )


def _block(
    values: Mapping[Key, Value], layout: Layout, backbone: Backbone, dataset: Dataset, subset: str
) -> tuple[list[str], list[Cell]]:
    """Return the lines of one data set, the backbone's column left blank, and their cells row by row."""
    columns = [
        column_cells(
            values, backbone=backbone.name, dataset=dataset.name, metric=metric, methods=layout.methods, subset=subset
        )
        for metric in _METRICS
    ]
    lines, printed = [], []
    for k, method in enumerate(layout.methods):
        cells = [column[method.name] for column in columns]
        label = multirow(len(layout.methods), escape(dataset.label)) if k == 0 else ""
        lines.append(row(["", label, escape(method.label), *(cell.tex for cell in cells)]))
        printed += cells
    return lines, printed

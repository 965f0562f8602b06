"""Calibration of the branches: are they too sure, or too extreme, before and after they are fused?

Not in the paper. PSR's classes are weighted, which shifts its log-odds by a constant that a temperature cannot undo; it
shows as calibration-in-the-large. In distribution, and the equal-weight mean over OOD data sets.
"""

from collections.abc import Mapping

import polars as pl

from dualread.tables._cells import Cell, Table, column_cells, csv_rows, notes
from dualread.tables._latex import block_heading, escape, float_table, row
from dualread.tables._layout import Layout
from dualread.tables._values import Key, Value, summarize

_METRICS = {"calibration_slope": "Slope", "calibration_in_the_large": "In the large"}


def build(metrics: pl.DataFrame, layout: Mapping) -> Table:
    """Return the table of the study that `metrics` (a collected metrics table) is of.

    Raises:
        ConfigError: `layout` is malformed.
    """
    parsed = Layout.parse(layout)
    return render(summarize(metrics, seeds=parsed.seeds), parsed)


def render(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the table of `values`, from wherever they are."""
    places = {layout.id_dataset.name: escape(layout.id_dataset.label), "ood6": "OOD averaged"}
    body: list[str] = []
    printed: list[Cell] = []
    for backbone in layout.backbones:
        columns = [
            column_cells(values, backbone=backbone.name, dataset=place, metric=metric, methods=layout.methods)
            for place in places
            for metric in _METRICS
        ]
        body += [*([r"\addlinespace[2pt]"] if body else []), block_heading(backbone.label, 1 + len(columns))]
        for method in layout.methods:
            cells = [column[method.name] for column in columns]
            body.append(row([escape(method.label), *(cell.tex for cell in cells)]))
            printed += cells
    caption = [
        f"Calibration of the branches, study {escape(layout.study)}.",
        "Of a logistic regression of correctness on the log-odds of the confidence: its slope (1 is calibrated, less "
        "is too extreme) and, with a slope of 1, its intercept, the calibration in the large (0 is calibrated, less "
        "is too sure).",
        "Mean over seeds, with the sample standard deviation as subscript where there are several.",
        *notes(printed, "branches"),
    ]
    return Table(
        tex=float_table(
            name="branches",
            wide=False,
            columns="l" + "c" * len(_METRICS) * len(places),
            head=[
                row(["", *(rf"\multicolumn{{{len(_METRICS)}}}{{c}}{{{label}}}" for label in places.values())]),
                r"\cmidrule(lr){2-3}\cmidrule(lr){4-5}",
                row(["Method", *list(_METRICS.values()) * len(places)]),
            ],
            body=body,
            caption=" ".join(caption),
        ),
        cells=csv_rows("branches", printed),
    )

"""Four metrics in one place: accuracy and AUROC above, ECE and Brier score below. Shared by ood_acc and calib."""

from collections.abc import Mapping, Sequence
from itertools import chain

from dualread.tables._cells import Cell, Table, column_cells, csv_rows, notes
from dualread.tables._latex import block_heading, escape, float_table, row
from dualread.tables._layout import NULL_GROUP, Layout
from dualread.tables._values import Key, Value

_METRICS = ("accuracy", "auroc", "ece15", "brier")


def render(
    name: str, values: Mapping[Key, Value], layout: Layout, places: Sequence[tuple[str, str]], caption: Sequence[str]
) -> Table:
    """Return the table `name`: one row a method, one column a place.

    Args:
        name: The table's.
        values: From wherever they are.
        layout: Its backbones and methods are the rows.
        places: Data sets, or means over several, each with its label.
        caption: Its first sentences, LaTeX.
    """
    body: list[str] = []
    printed: list[Cell] = []
    for backbone in layout.backbones:
        columns = [
            [
                column_cells(values, backbone=backbone.name, dataset=place, metric=metric, methods=layout.methods)
                for metric in _METRICS
            ]
            for place, _ in places
        ]
        body += [*([r"\midrule"] if body else []), block_heading(backbone.label, 1 + len(places))]
        for method in layout.methods:
            cells = [[metric[method.name] for metric in place] for place in columns]
            body.append(row([escape(method.label), *map(_stacked, cells)]))
            printed += chain.from_iterable(cells)
    return Table(
        tex=float_table(
            name=name,
            wide=True,
            columns="l" + "c" * len(places),
            head=[
                row(["", *(escape(label) for _, label in places)]),
                row(["Method", rf"\multicolumn{{{len(places)}}}{{c}}{{Acc./AUROC (top); ECE-15/Brier (bottom)}}"]),
            ],
            body=body,
            caption=" ".join([*caption, *_caption(layout), *notes(printed, name)]),
        ),
        cells=csv_rows(name, printed),
    )


def _stacked(cells: Sequence[Cell]) -> str:
    accuracy, auroc, ece, brier = (cell.tex for cell in cells)
    return rf"\shortstack{{{accuracy}\,/\,{auroc}\\{ece}\,/\,{brier}}}"


def _caption(layout: Layout) -> list[str]:
    has_nulls = any(method.group == NULL_GROUP for method in layout.methods)
    return [
        "Mean over seeds, with the sample standard deviation as subscript where there are several; bold: best printed "
        f"value within a backbone, except accuracy{' and nulls' if has_nulls else ''}.",
    ]

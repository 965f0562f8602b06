"""Blocks of rows, one row per method, with the cells that they print; and the finished table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from dualread.declared.tables import LabeledBackbone, LabeledMethod
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Beside, Float, Gap, Heading, Line, Row
from dualread.reporting.tables.cells import Cell, Table, column_cells, column_texts, csv_rows, notes
from dualread.reporting.tables.values import Key, Value


class Column(NamedTuple):
    """The data set, metric and subset whose values a column shows, and with how many decimals."""

    dataset: str
    metric: str
    subset: str = "all"
    digits: int = 3


class Lines(NamedTuple):
    """Lines of a table, and the cells that they print, row by row."""

    lines: list[Line]
    cells: list[Cell]


def rows_of(
    values: Mapping[Key, Value],
    backbone: LabeledBackbone,
    methods: Sequence[LabeledMethod],
    columns: Iterable[Column],
    *,
    shared: Sequence[str] = (),
) -> dict[str, tuple[list[str], list[Cell]]]:
    """Return the row of each method by its name: the text of every column, and the cells that the row prints.

    Args:
        values: Ours or the published ones.
        backbone: The backbone of the block. Within it, the best value of a column is bold.
        methods: In the order of the rows.
        columns: In their order.
        shared: Metrics for which all methods of an actor have the same value; it is printed once.
    """
    found = [
        column_texts(
            column_cells(values, backbone=backbone.name, methods=methods, **column._asdict()),
            methods,
            shared=column.metric in shared,
        )
        for column in columns
    ]
    return {
        method.name: (
            [column[method.name][1] for column in found],
            [cell for column in found for cell in column[method.name][0]],
        )
        for method in methods
    }


def label_of(method: LabeledMethod) -> list[str]:
    """Return the label of a method's row, the default of `block`."""
    return [escape(method.label)]


def block(
    values: Mapping[Key, Value],
    backbone: LabeledBackbone,
    methods: Sequence[LabeledMethod],
    columns: Iterable[Column],
    *,
    labels: Callable[[LabeledMethod], Sequence[str]] = label_of,
    beside: Sequence[str] = (),
    shared: Sequence[str] = (),
) -> Lines:
    """Return one row per method, see `rows_of`.

    Args:
        values: Ours or the published ones.
        backbone: The backbone of the block.
        methods: In the order of the rows.
        columns: In their order.
        labels: The texts before the cells of a row.
        beside: Texts that stand once beside all rows, one column each, before the labels.
        shared: Metrics for which all methods of an actor have the same value; it is printed once.
    """
    rows = rows_of(values, backbone, methods, columns, shared=shared)
    lines = Lines([], [])
    for k, method in enumerate(methods):
        texts, cells = rows[method.name]
        first = [Beside(text, len(methods)) if text and k == 0 else "" for text in beside]
        lines.lines.append(Row([*first, *labels(method), *texts]))
        lines.cells.extend(cells)
    return lines


def headed(label: str, n_columns: int, lines: Lines) -> Lines:
    """Return the lines under a heading across `n_columns` columns; the label is not yet escaped."""
    return Lines([Heading(label, n_columns), *lines.lines], lines.cells)


def stacked(blocks: Iterable[Lines], between: Gap = Gap.RULE) -> Lines:
    """Return the blocks one below the other, with a gap between any two."""
    stack: list[Line] = []
    cells: list[Cell] = []
    for lines in blocks:
        stack += [*([between] if stack else []), *lines.lines]
        cells += lines.cells
    return Lines(stack, cells)


def finished(
    name: str,
    lines: Lines,
    *,
    wide: bool,
    columns: str,
    head: Sequence[Line],
    caption: Sequence[str],
    label: str | None = None,
    specification: str | None = None,
    small: bool = False,
) -> Table:
    """Return the table `name` with one float, and its CSV.

    Args:
        name: The table's name.
        lines: Its body.
        wide: Whether it spans both columns of a two-column page.
        columns: One letter per column, see `Float`.
        head: Rows above the body.
        caption: Sentences; those that explain marks in the body are added.
        label: See `Float`.
        specification: See `Float`.
        small: See `Float`.
    """
    sentences = " ".join([*caption, *notes(lines.cells, name)])
    return Table(
        floats=[
            Float(
                name=name,
                wide=wide,
                columns=columns,
                head=head,
                body=lines.lines,
                caption=sentences,
                label=label,
                specification=specification,
                small=small,
            )
        ],
        cells=csv_rows(name, lines.cells),
    )

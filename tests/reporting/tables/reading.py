"""The printed cells of a table, read back by the labels of their block, row and column; and the paper's own values.

A cell is written here as the CSV prints it: .952±.004, with a dagger and the initials of the sides with few images.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from dualread.reporting.tables.entries import (
    DASH,
    DITTO,
    INDENT,
    Entry,
    Heading,
    Joined,
    Number,
    Over,
    TableRow,
    TwoLines,
    plain,
)
from dualread.reporting.tables.published import published_cells
from dualread.reporting.tables.values import Key, Value

# The heads of columns that hold labels; all other columns hold cells.
_LABELS = (
    *("Actor", "Backbone", "Condition", "Dataset", "Family", "Method", "Method − baseline", "Training", "Variant"),
)


class Place(NamedTuple):
    """One cell below the heads: all labels above and beside it, without arrows and counts; and its entry."""

    labels: tuple[str, ...]
    entry: Entry


def places(table) -> Iterator[Place]:
    """Yield every cell below the heads, except those in columns of labels and in rows that belong to the one above."""
    for part in table.floats:
        columns = _columns(part.head)
        heading, above = [], [""] * len(columns)
        for line in part.body:
            if isinstance(line, Heading):
                heading, above = re.split(", |: ", line.label), [""] * len(columns)
            elif isinstance(line, TableRow) and not str(line.cells[0]).startswith(INDENT):
                is_label = [bool(labels) and labels[-1] in _LABELS for labels in columns]
                above = [
                    old if new == DITTO or (is_text and new == "") else new
                    for new, old, is_text in zip(line.cells, above, is_label, strict=True)
                ]
                beside = [_label(entry) for entry, is_text in zip(above, is_label, strict=True) if is_text]
                for labels, entry, is_text in zip(columns, above, is_label, strict=True):
                    if labels and not is_text:
                        yield Place((*heading, *filter(None, beside), *labels), entry)


def key_of(*, backbone, method, metric, dataset="slake", subset="all"):
    """Return the key of the cell with these labels."""
    if dataset == "ood":
        dataset = "ood_ccg" if metric.endswith("ccg_auc") else "ood6"
    return Key(backbone, dataset, subset, method, metric)


def read(table, meanings, key=key_of) -> dict[Key, str]:
    """Return {key: printed cell}.

    Args:
        table: A printed table.
        meanings: For each label, the fields of the key that it stands for; for the label of a column also `metrics`.
        key: Makes a key of these fields and one metric.
    """
    return {cell: plain(entry) for cell, entry in _cells(table, meanings, key).items()}


def read_bold(table, meanings):
    """Return the keys of the cells that are printed in bold."""
    cells = _cells(table, meanings, key_of).items()
    return {cell for cell, entry in cells if isinstance(entry, Number) and entry.is_bold}


def published(table):
    """Return the values of the paper's `table`, keyed as ours are; three runs where it prints a deviation, else one.

    The paper calls its OOD means `ood`; ours say over which data sets: `ood6`, and `ood_ccg` for CCG.
    """
    values = {}
    for place, (mean, std) in published_cells().items():
        if place.table == table:
            names = place._replace(dataset=place.quantity.dataset)[1:]
            key = Key(*(name or None for name in names))
            values[key] = Value(mean=mean, std=std, n_runs=1 if std is None else 3, n=None)
    return values


def as_printed(value, digits=3):
    """Return a published value as the CSV prints it: .952±.004, 1.000, 109.7±3.1."""
    texts = [f"{number:.{digits}f}" for number in (value.mean, value.std) if number is not None]
    return "±".join(text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text for text in texts)


def _cells(table, meanings, key):
    cells = {}
    for place in places(table):
        meant = [meanings[label] for label in place.labels]  # an unexpected label is an error
        fields = {name: value for meaning in meant for name, value in meaning.items()}
        metrics, numbers = fields.pop("metrics", ()), list(_numbers(place.entry))
        if numbers == [DASH]:
            numbers *= len(metrics)  # one dash stands for all metrics of the column
        if metrics and place.entry != "":
            for metric, number in zip(metrics, numbers, strict=True):
                cell = key(**fields, metric=metric)
                assert cell not in cells, f"{cell} is printed twice"
                cells[cell] = number
    return cells


def _numbers(entry):
    if isinstance(entry, Joined | TwoLines):
        for part in entry.parts if isinstance(entry, Joined) else entry:
            yield from _numbers(part)
    elif isinstance(entry, Number) or (isinstance(entry, str) and (entry == DASH or entry.isdigit())):
        yield entry


def _columns(head):
    """Return the labels above each column, from top to bottom."""
    rows = []
    for line in head:
        texts = [(cell.text, cell.columns) if isinstance(cell, Over) else (cell, 1) for cell in line.cells]
        rows.append([re.sub(r"[↑↓]| \(𝑛=\d+\)", "", text) for text, n in texts for _ in range(n)])
    width = max(map(len, rows))
    return [
        tuple(filter(None, labels)) for labels in zip(*(row + [""] * (width - len(row)) for row in rows), strict=True)
    ]


def _label(entry):
    return entry if isinstance(entry, str) else entry[0]

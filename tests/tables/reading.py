r"""The printed cells of a table, read back from its LaTeX; and tidy metrics in which every value is another.

A cell is written here as the CSV prints it: .952±.004, with a dagger where it is underpowered.
"""

import re

from tests.tables.layouts import estimate, metrics

_NUMBER = re.compile(
    r"\$(?P<bold>\\mathbf\{)?(?P<mean>[+-]?[\d.]+)\}?(?:_\{\\pm(?P<std>[\d.]+)\})?(?P<weak>\{\}\^\{\\dagger\})?\$|---"
)


def body(table):
    """The lines between the head and the bottom that hold cells, without the headings of blocks."""
    lines = table.tex.splitlines()
    inside = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    return [line for line in inside if line.endswith(r"\\") and not line.startswith(r"\multicolumn")]


def label(line, column=0):
    return line.removesuffix(r" \\").split(" & ")[column].replace(r"\_", "_")


def printed(line):
    """The numbers of a line, in reading order; whatever has no form of a cell is passed over."""
    return [
        "---" if found["mean"] is None else found["mean"] + (f"±{found['std']}" if found["std"] else "")
        + ("†" if found["weak"] else "")
        for found in _NUMBER.finditer(line)
    ]  # fmt: skip


def is_bold(line):
    return [found["bold"] is not None for found in _NUMBER.finditer(line)]


def read(table, grid, column=0):
    """Every cell by its key: `grid` holds the label expected in a column, and the keys, of each line in order."""
    lines = body(table)
    assert [label(line, column) for line in lines] == [expected for expected, _ in grid]
    cells = {}
    for line, (_, keys) in zip(lines, grid, strict=True):
        cells |= dict(zip(keys, printed(line), strict=True))
    return cells


def read_bold(table, grid):
    lines = zip(body(table), grid, strict=True)
    return {key for line, (_, keys) in lines for key, bold in zip(keys, is_bold(line), strict=True) if bold}


def as_printed(value, digits=3):
    """What a published value looks like: .952±.004, 1.000, 109.7±3.1."""
    texts = [f"{number:.{digits}f}" for number in (value.mean, value.std) if number is not None]
    return "±".join(text.removeprefix("0") if text.startswith("0.") else text for text in texts)


def tidy(keys, seeds=(17, 29, 43)):
    """One row a key and seed, so that any two means differ, and any two deviations: value k/1000, seeds k/10000 apart.

    The k-th key has .100 + k/1000 as its mean and (k + 1)/10000 between two seeds.
    """
    return [
        estimate(
            key.method, key.metric, 0.1 + k / 1000 + (s - 1) * (k + 1) / 10000, seed=seed, dataset=key.dataset,
            backbone=key.backbone, subset=key.subset,
        )
        for k, key in enumerate(keys)
        for s, seed in enumerate(seeds)
    ]  # fmt: skip


def swapped(rows, column, one, other):
    """The rows with two names of a column exchanged."""
    names = {one: other, other: one}
    return metrics(*({**row, column: names.get(row[column], row[column])} for row in rows))


def exchanged(cells, field, one, other):
    """The cells with two names of a field of their keys exchanged."""
    names = {one: other, other: one}
    return {
        key._replace(**{field: names.get(getattr(key, field), getattr(key, field))}): text
        for key, text in cells.items()
    }

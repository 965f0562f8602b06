r"""A table as a value: rows of cells under a head, with a caption. `_latex` writes it as LaTeX, `_html` as HTML.

The text of a cell or a caption is in LaTeX's notation for running text and formulas, such as `AUROC$\uparrow$`. What a
person named (a label, a study) goes through `escape` first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Over(NamedTuple):
    """A title over several columns, centered."""

    text: str
    columns: int


class Beside(NamedTuple):
    """A label beside several rows. It stands in the first of them; in the rows below, its place is the empty string."""

    text: str
    rows: int


class Words(NamedTuple):
    """A label (not yet escaped) beside several rows, one word per line where there are enough rows for its words."""

    label: str
    rows: int


class TwoLines(NamedTuple):
    """A cell of two lines, closer to each other than to the lines of the rows above and below."""

    upper: str
    lower: str


class Raised(NamedTuple):
    """A label beside cells of two lines, at half of their height."""

    text: str


Entry = str | Over | Beside | Words | TwoLines | Raised


class Row(NamedTuple):
    """One row of cells; with `ruled`, a rule stands below each of its titles."""

    cells: Sequence[Entry]
    ruled: bool = False


class Heading(NamedTuple):
    """A line across `columns` columns that opens a block of rows, such as a backbone; the label is not yet escaped."""

    label: str
    columns: int


class Gap(Enum):
    """What separates two rows."""

    RULE = "rule"
    SPACE = "space"
    SMALL_SPACE = "small space"


Line = Row | Heading | Gap


@dataclass(frozen=True, kw_only=True)
class Float:
    """One table with its caption. Most tables have one float; some have one per backbone.

    Attributes:
        name: The table's name; its CSV file has the same.
        wide: Whether it spans both columns of a two-column page.
        columns: One letter per column: l, c or r for its alignment, p for a paragraph.
        head: The rows above the body; may be empty.
        body: The rows, headings and gaps.
        caption: Sentences, as text in LaTeX's notation.
        label: The LaTeX label is tab:<label>; the name by default. Tables with several floats need one per float.
        specification: The columns as LaTeX specifies them, where that says more than `columns`.
        small: Whether it is set in smaller type, because its marks would not fit otherwise.
    """

    name: str
    wide: bool
    columns: str
    head: Sequence[Line]
    body: Sequence[Line]
    caption: str
    label: str | None = None
    specification: str | None = None
    small: bool = False


def spanning(n_before: int, titles: Sequence[tuple[str, int]]) -> Row:
    """Return a row of titles with a rule below each.

    Args:
        n_before: Number of columns before the first title.
        titles: Each title and the number of its columns, from left to right.
    """
    return Row([*[""] * n_before, *(Over(*title) for title in titles)], ruled=True)

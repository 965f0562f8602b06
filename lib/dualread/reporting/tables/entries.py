"""What a table holds: rows of entries below a head, with a caption. `_latex` and `_html` write it.

A text is written as it is read, in Unicode: `AUROC↑`, `𝑛=384`, `1×10⁻⁴`; letters of formulas are mathematical italics.
What a person named (a label, a study) is a text like any other. A number is a value with its digits and its marks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

DASH = "—"  # stands where a value is undefined
UNDEFINED = "---"  # what the CSV file has of a dash
DITTO = "”"  # the same as in the row above
INDENT = "\N{EM SPACE}"  # before a label that belongs to the row above


class Number(NamedTuple):
    """A number with the digits that are printed, and its marks."""

    mean: str
    spread: str = ""  # its deviation; empty where it has none
    is_bold: bool = False  # the mean alone
    short: str = ""  # the initials of the sides with few images, which follow a dagger; empty for no dagger
    by_chance: bool = False  # whether it has a circle: an ECE that calibrated confidences reach by chance


class Interval(NamedTuple):
    """The ends of an interval, with the digits that are printed."""

    low: str
    high: str


class PValues(NamedTuple):
    """The p-values of one difference, in parentheses."""

    texts: Sequence[str]


class Code(NamedTuple):
    """A digest."""

    text: str


class Joined(NamedTuple):
    """Entries that follow each other in one line."""

    parts: Sequence["Inline"]


Inline = str | Number | Interval | PValues | Code | Joined


class TwoLines(NamedTuple):
    """A cell of two lines, closer to each other than to the lines of the rows above and below."""

    upper: Inline
    lower: Inline


class Over(NamedTuple):
    """A title over several columns, centered."""

    text: str
    columns: int


class Beside(NamedTuple):
    """A label beside several rows. It stands in the first of them; in the rows below, its place is the empty string.

    With `by_word`, each word has a line of its own where there are enough rows for all words.
    """

    text: str
    rows: int
    by_word: bool = False


class Raised(NamedTuple):
    """A label beside cells of two lines, at half of their height."""

    text: str


Entry = Inline | TwoLines | Over | Beside | Raised


class TableRow(NamedTuple):
    """One row of cells; with `ruled`, a rule stands below each of its titles."""

    cells: Sequence[Entry]
    ruled: bool = False


class Heading(NamedTuple):
    """A line across `columns` columns that opens a block of rows, such as a backbone."""

    label: str
    columns: int


class Gap(Enum):
    """What separates two rows."""

    RULE = "rule"
    SPACE = "space"
    SMALL_SPACE = "small space"


Line = TableRow | Heading | Gap


@dataclass(frozen=True, kw_only=True)
class Float:
    """One table with its caption. Most tables have one float; some have one per backbone."""

    name: str  # of the table, and of its CSV file
    wide: bool  # whether it spans both columns of a two-column page
    columns: str  # one letter per column: l, c or r for its alignment, p for a paragraph
    head: Sequence[Line]  # the rows above the body; may be empty
    body: Sequence[Line]
    caption: str
    label: str | None = None  # the LaTeX label is tab:<label>; by default the name, which several floats cannot share
    specification: str | None = None  # the columns as LaTeX specifies them, where that says more than `columns`
    small: bool = False  # whether it is set in smaller type, because its marks would not fit otherwise


def plain(entry: Inline | TwoLines) -> str:
    """Return what the CSV file has of an entry: .952±.004, with a dagger where images are few."""
    match entry:
        case Number():
            spread, few = entry.spread and f"±{entry.spread}", entry.short and f"†{entry.short}"
            return f"{entry.mean}{spread}{few}{'°' * entry.by_chance}"
        case Interval():
            return f"[{entry.low}, {entry.high}]"
        case PValues():
            return f"({'; '.join(entry.texts)})"
        case TwoLines():
            return f"{plain(entry.upper)} {plain(entry.lower)}"
        case Joined():
            return "".join(map(plain, entry.parts))
        case Code():
            return entry.text
    return UNDEFINED if entry == DASH else entry.replace("\N{NO-BREAK SPACE}", " ")

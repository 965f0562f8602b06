"""How results are printed: numbers, sentences, and tables of values, which a terminal and a page write as texts."""

import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from dualread.apps.text import aligned

WIDTH = 100
MOST_ROWS = 12  # of a table on the screen, which leave room for what is said of them, on 24 lines
GOOD, BAD, UNCLEAR = "good", "bad", ""


def number(value: float | None, digits: int = 3) -> str:
    """Return a number without a leading zero, and a whole one without decimals: .812, -.030, 1; a dash for None."""
    if value is None:
        return "-"
    text = f"{value:.{digits}f}"
    text = text.removeprefix("-") if float(text) == 0.0 else text
    sign = "-" if text.startswith("-") else ""
    return str(int(value)) if float(value).is_integer() else sign + text.removeprefix("-").removeprefix("0")


@dataclass(frozen=True)
class Estimate:
    """A number with the ends of its interval, None where there is none."""

    value: float | None
    low: float | None
    high: float | None

    def text(self, digits: int, end_digits: int) -> str:
        """Return the number, and [low, high]."""
        ends = (self.low, self.high)
        shown = "" if None in ends else f" [{', '.join(self._number(end, end_digits) for end in ends)}]"
        return self._number(self.value, digits) + shown

    def _number(self, value: float | None, digits: int) -> str:
        return number(value, digits)


class Difference(Estimate):
    """A difference, which has a sign where it is not 0."""

    def _number(self, value: float | None, digits: int) -> str:
        text = number(value, digits)
        return text if value is None or text.startswith("-") or float(text) == 0.0 else f"+{text}"


@dataclass(frozen=True)
class PValue:
    """A p-value, and whether the resamples can say no more than "at most"."""

    value: float | None
    at_most: bool | None

    def text(self) -> str:
        """Return it with three digits."""
        return "-" if self.value is None else f"{'<=' if self.at_most else ''}{self.value:.3g}"


Cell = str | float | Estimate | PValue | None


def text_of(cell: Cell, digits: int, end_digits: int) -> str:
    """Return a cell as text; numbers have so many digits, and ends of intervals so many."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, PValue):
        return cell.text()
    return cell.text(digits, end_digits) if isinstance(cell, Estimate) else number(cell, digits)


def cut(text: str, width: int = WIDTH) -> str:
    """Return a text of at most `width` characters."""
    return text if len(text) <= width else f"{text[: max(width - 3, 0)]}..."


def wrapped(texts: Iterable[str]) -> Iterator[str]:
    """Yield sentences in lines of at most `WIDTH` characters; a longer word, such as a path, stays whole."""
    for text in texts:
        yield from textwrap.wrap(
            text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        ) or [""]


@dataclass(frozen=True, kw_only=True)
class ScreenLine:
    """A line of the screen and its kind; what a terminal may color is its text from `start` on."""

    text: str
    kind: str = UNCLEAR
    start: int = 0


@dataclass(frozen=True, kw_only=True)
class ReportTable:
    """A table of values.

    Attributes:
        caption: What it is.
        columns: The heads.
        rows: The cells of each row.
        remarks: What is remarked on each row, "" for nothing; empty if there are none.
        names: Columns of names, which are cut where a line has no room for them.
        notes: Sentences about it.
        brief: The rows that one screen shows; None for all.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    remarks: Sequence[str] = ()
    names: Collection[int] = (0,)
    notes: Sequence[str] = ()
    brief: Collection[int] | None = None

    @property
    def right(self) -> set[int]:
        """The columns of plain numbers, which are aligned to the right."""
        return {k for k in range(len(self.columns)) if not any(isinstance(row[k], str | Estimate) for row in self.rows)}

    def texts(self) -> list[tuple[str, ...]]:
        """Return the heads and all rows with four digits and, as the last column, their remarks."""
        rows = [tuple(text_of(cell, 4, 4) for cell in row) for row in (self.columns, *self.rows)]
        return [(*row, remark) for row, remark in zip(rows, ("", *self.remarks), strict=True)] if self.remarks else rows

    def lines(self) -> Iterator[str]:
        """Yield all of it, however long its lines are."""
        yield from (self.caption, *aligned(self.texts(), numbers=self.right), *self.notes)

    def screen(self) -> Iterator[str]:
        """Yield its first rows in lines of at most `WIDTH` characters, and below what is remarked on them."""
        shown = [k for k in range(len(self.rows)) if self.brief is None or k in self.brief]
        rows = [self.columns, *(self.rows[k] for k in shown[:MOST_ROWS])]
        texts = [[text_of(cell, 3, 2) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        while sum(widths) + 2 * len(widths) - 2 > WIDTH and any(widths[k] > len("...") for k in self.names):
            widths[max(self.names, key=lambda k: widths[k])] -= 1
        cells = [[cut(text, width) for text, width in zip(row, widths, strict=True)] for row in texts]
        yield from map(cut, aligned(cells, numbers=self.right))
        if len(shown) > MOST_ROWS:
            yield f"... and {len(shown) - MOST_ROWS} more"
        remarked: dict[str, dict[str, None]] = {}
        for k in shown if self.remarks else ():
            remarked.setdefault(self.remarks[k], {})[text_of(self.rows[k][0], 3, 2)] = None
        yield from wrapped(f"{', '.join(names)}: {remark}" for remark, names in remarked.items() if remark)
        yield from wrapped(self.notes)

"""A plain table of the report: rows of texts, aligned columns, and an optional bar per row."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table for the template; the first column names the row.

    Attributes:
        caption: Plain text.
        columns: Their headings.
        rows: One text per column each.
        right: Positions of the columns with numbers, which are aligned to the right.
        code: Positions of the columns with keys, digests or paths.
        shares: The length of a bar for each row, from 0 to 1; empty for no bars.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[int] = frozenset()
    code: frozenset[int] = frozenset()
    shares: Sequence[float] = ()


def count(number: int | None) -> str:
    """Return a count with its digits in groups of three; a dash for None."""
    return "—" if number is None else f"{number:,}".replace(",", "\u202f")

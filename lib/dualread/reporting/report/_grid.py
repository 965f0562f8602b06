"""A plain table of the page: texts in rows, some columns to the right, one perhaps with a bar."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What the template prints as a table; the first column says what a row is.

    Attributes:
        caption: Plain text.
        columns: Their headings.
        rows: One text a column each.
        right: Columns that hold numbers.
        code: Columns that hold keys, digests and paths.
        shares: For each row the length of a bar, from 0 to 1; none without.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[int] = frozenset()
    code: frozenset[int] = frozenset()
    shares: Sequence[float] = ()


def count(number: int | None) -> str:
    """Return a count with thin groups of three digits, a dash where there is none."""
    return "—" if number is None else f"{number:,}".replace(",", "\u202f")

"""Read .csv and .tsv: separated by commas, semicolons or tabs, with quotes doubled or escaped by a backslash.

The separator is the one that occurs most often in the first line, outside quotes; a line `sep=;` before it decides.
Cells may hold line breaks in quotes. An empty cell is a missing value. Every row has as many cells as the first line,
but for empty cells at the right, which spreadsheets leave behind.

The rows are read by Python's csv module in its strict form, because polars reads fewer rows where a backslash escapes a
quote, and says nothing. A file that can be read in two ways with different rows is refused.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from dualread.data.foreign_tables.content import LARGEST_COLUMNS, LARGEST_ROWS, Content, look_through
from dualread.errors import DataError

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_GUESSED = ",;\t"
_DECLARED = re.compile(r"sep=([,;\t|])[\r\n]*")
_LISTED = 10  # problems that one error lists
_LONGEST_CELL = 16_000_000  # characters
_ESCAPED = re.compile(r'\\(["\\])')


@dataclass(frozen=True, kw_only=True)
class Delimited:
    """A .csv or .tsv.

    Attributes:
        content: The file.
        separator: What separates its cells.
        skipped: Number of lines before the names of columns: the line sep=;.
        escaped: Whether a backslash escapes a quote within quotes.
        columns: The names in the first line, distinct.
    """

    content: Content
    separator: str
    skipped: int
    escaped: bool = False
    columns: tuple[str, ...] = ()

    @property
    def form(self) -> str:
        """In words, how the file is read: "semicolons, windows-1252"."""
        quotes = ", quotes escaped by a backslash" if self.escaped else ""
        return f"{_SEPARATORS[self.separator]}, {self.content.encoding_words}{quotes}"

    def rows(self) -> Iterator[tuple[int, int, list[str]]]:
        """Yield (number of the row, number of the line on which it ends, cells) of every row that is not blank.

        Both numbers start at 1: row 1 is the first below the names of columns, and blank rows are counted.

        Raises:
            DataError: Rows have more or fewer cells than there are columns, up to ten are listed; or the file is no
                .csv, or its quotes can be read in two ways.
        """
        width, wrong, n_wrong, last, breaks = len(self.columns), [], 0, 0, False
        for number, (line, cells) in enumerate(_parsed(self)):
            breaks, last = breaks or line > last + 1 > 1, line
            if number == 0 or not any(map(str.strip, cells)):
                continue
            if len(cells) > width:  # empty cells at the right
                cells = cells[:width] + [cell for cell in cells[width:] if cell.strip()]
            if len(cells) != width:
                n_wrong += 1
                if n_wrong <= _LISTED:
                    wrong.append(self._cells_sentence(line, len(cells)))
                continue
            if number > LARGEST_ROWS:
                raise DataError(f"{self.content.path}: has more than {LARGEST_ROWS:,} rows. Split it.")
            yield number, line, cells
        if n_wrong:
            more = [f"... and {n_wrong - _LISTED} more"] if n_wrong > _LISTED else []
            raise DataError("\n".join([*wrong, *more]))
        if breaks:
            _refuse_plain_quotes(self)

    def _cells_sentence(self, line: int, n: int) -> str:
        return (
            f"{self.content.path}: line {line}: has {n} cells, expected {len(self.columns)}. Put cells that contain a"
            f" {self.separator!r} in double quotes, and double the quotes in them."
        )


def open_delimited(path: Path) -> Delimited:
    """Return how a .csv or .tsv is to be read.

    Raises:
        DataError: The file is empty or of another form, a name of a column is missing or occurs twice, or it can be
            read in two ways.
    """
    content = look_through(path)
    if content.is_empty:
        raise DataError(f"{path}: has no rows, it is empty. Expected names of columns, and one row per line.")
    first, blank = _first_lines(content)
    declared = _DECLARED.fullmatch(first[0])
    separator = declared[1] if declared else _separator(path, first)
    table = Delimited(content=content, separator=separator, skipped=blank + 1 if declared else 0)
    if content.has_escaped_quotes:
        table = _of_either_form(table)
    return _with_columns(table)


def _first_lines(content: Content) -> tuple[list[str], int]:
    """Return the first two lines that are not blank, and the number of blank ones before them."""
    found: list[str] = []
    blank = 0
    for line in content.lines():
        if line.strip():
            found.append(line)
        else:
            blank += not found
        if len(found) == 2:
            break
    return found, blank


def _separator(path: Path, lines: list[str]) -> str:
    counts = [
        Counter(letter for letter in re.sub(r'"[^"]*"', "", line) if letter in _GUESSED) for line in (*lines, "")[:2]
    ]
    most = max(counts[0].values(), default=0)
    best = [separator for separator in _GUESSED if counts[0][separator] == most]
    if most and len(best) > 1:  # the second line may tell
        best = [separator for separator in best if counts[1][separator] == most]
    if len(best) == 1 or not most:  # or one column
        return best[0]
    raise DataError(
        f"{path}: line 1 does not say what separates its columns: {lines[0].strip()[:60]!r}. Expected commas,"
        " semicolons or tabs; or the line sep=; before it."
    )


def _with_columns(table: Delimited) -> Delimited:
    path = table.content.path
    names = [name.strip() for name in next((cells for _, cells in _parsed(table)), [])]
    while names and not names[-1]:  # empty columns at the right, which spreadsheets leave behind
        names.pop()
    if len(names) > LARGEST_COLUMNS:
        raise DataError(f"{path}: has {len(names):,} columns, expected at most {LARGEST_COLUMNS:,}. Is it transposed?")
    if names and not names[0]:  # the index of pandas has no name
        names[0] = "Unnamed: 0"
    wrong = ["a column has no name"] if "" in names else []
    wrong += [f"column {name!r} occurs more than once" for name, n in Counter(names).items() if n > 1 and name]
    if wrong:
        listed = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
        raise DataError(f"{path}: {wrong[0]}. Names of columns are missing or occur twice: {listed}. Correct line 1.")
    return replace(table, columns=tuple(names))


def _parsed(table: Delimited) -> Iterator[tuple[int, list[str]]]:
    """Yield (1-based line on which it ends, cells) of every row from the names of columns on.

    Raises:
        DataError: The quotes are not as in a .csv.
    """
    lines = table.content.lines()
    for _ in range(table.skipped):
        next(lines, None)
    if table.escaped:
        lines = (_ESCAPED.sub(lambda found: '""' if found[1] == '"' else "\\", line) for line in lines)
    begun = False
    csv.field_size_limit(_LONGEST_CELL)  # 131,072 by itself, which a long completion exceeds
    reader = csv.reader(lines, delimiter=table.separator, strict=True)
    try:
        for cells in reader:
            begun = begun or any(map(str.strip, cells))
            if begun:
                yield reader.line_num + table.skipped, cells
    except csv.Error as error:
        line = reader.line_num + table.skipped
        raise DataError(
            f"{table.content.path}: line {line}: not .csv ({error}). Put cells that contain {table.separator!r} or a"
            " line break in double quotes, and double the quotes in them."
        ) from error


def _of_either_form(table: Delimited) -> Delimited:
    """Return the table with the one form of quotes by which it can be read.

    A backslash before a quote is a character of the cell where quotes are doubled, and escapes the quote elsewhere.

    Raises:
        DataError: Neither form fits, or both do and give other rows.
    """
    forms = [table, replace(table, escaped=True)]
    problems: list[DataError | None] = []
    for form in forms:
        try:
            for _ in _with_columns(form).rows():
                pass
            problems.append(None)
        except DataError as error:
            problems.append(error)
    doubled, escaped = problems
    if doubled is not None and escaped is not None:
        raise doubled
    if doubled is not None or escaped is not None:
        return forms[0] if doubled is None else forms[1]
    pairs = zip_longest(*(_parsed(form) for form in forms))
    if any(one is None or other is None or _bare(one[1]) != _bare(other[1]) for one, other in pairs):
        raise DataError(
            f"{table.content.path}: can be read in two ways, with different rows: a backslash before a double quote may"
            " be a character, or escape the quote. Write the table again with quotes doubled."
        )
    return forms[0]


def _bare(cells: list[str]) -> list[str]:
    return [cell.replace("\\", "").replace('"', "") for cell in cells]


def _refuse_plain_quotes(table: Delimited) -> None:
    """Refuse cells with line breaks if every line is a row of its own where quotes are plain characters."""
    cuts = len(table.columns) - 1
    lines = table.content.lines()
    for _ in range(table.skipped):
        next(lines, None)
    if cuts and all(line.count(table.separator) == cuts for line in lines if line.strip()):
        raise DataError(
            f"{table.content.path}: can be read in two ways, with different rows: double quotes enclose line breaks,"
            " and yet every line by itself has all columns. Write the table again, with every text in double quotes and"
            " the quotes in it doubled."
        )

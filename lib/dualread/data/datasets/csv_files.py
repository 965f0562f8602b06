"""Read a .csv as Excel saves it: separated by commas, semicolons or tabs, in UTF-8 or Windows-1252.

The separator is the one that occurs most often in the first line, outside quotes; a line `sep=;` before it decides.
Bytes that are not UTF-8 are Windows-1252 ("ANSI" in Excel). Cells may hold line breaks in quotes, and an empty cell is
a missing value.
"""

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

from dualread.data.datasets.base import refuse
from dualread.errors import DataError

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}


@dataclass(frozen=True, kw_only=True)
class Csv:
    """The content of a .csv.

    Attributes:
        columns: The names in the first line.
        records: The rows, each with the 0-based number of the line on which it ends. An empty cell is None.
        form: In words, how the file was read: "semicolons, windows-1252".
    """

    columns: tuple[str, ...]
    records: list[tuple[int, dict[str, str | None]]]
    form: str


def read_csv(file: Path) -> Csv:
    """Read a .csv.

    Raises:
        DataError: The file is empty or of another form, a name is missing or occurs twice, or rows have more or fewer
            cells than the first line; up to ten lines are listed, counted from 1.
    """
    text, encoding = _text(file)
    if not text.strip():
        raise DataError(f"{file}: has no rows, it is empty. Expected one row per question.")
    separator = _separator(file, text)
    text = re.sub(r"\Asep=.\r?\n", "", text)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        rows = [(lines.line_num - 1, row) for row in lines if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise DataError(f"{file}: line {lines.line_num}: not .csv ({error}). Save the table again.") from error
    if len(rows) < 2:
        raise DataError(f"{file}: has no rows. Expected names of columns in the first line, and one row per question.")
    columns = [name.strip() for name in rows[0][1]]
    while columns and not columns[-1]:  # empty columns at the right, which spreadsheets leave behind
        columns.pop()
    if "" in columns or len(set(columns)) < len(columns):
        raise DataError(f"{file}: names of columns are missing or occur twice: {', '.join(columns)}. Correct line 1.")
    rows = [
        (number, cells[: len(columns)] + [cell for cell in cells[len(columns) :] if cell]) for number, cells in rows
    ]
    refuse(
        f"{file}: line {number + 1}: has {len(cells)} cells, expected {len(columns)}. Put cells that contain a"
        f" {separator!r} in double quotes."
        for number, cells in rows[1:]
        if len(cells) != len(columns)
    )
    records = [
        (number, {name: cell.strip() or None for name, cell in zip(columns, cells, strict=True)})
        for number, cells in rows[1:]
    ]
    return Csv(columns=tuple(columns), records=records, form=f"{_SEPARATORS[separator]}, {encoding}")


def _text(file: Path) -> tuple[str, str]:
    content = file.read_bytes()
    try:
        return content.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError:
        try:
            return content.decode("cp1252"), "windows-1252"
        except UnicodeDecodeError as error:
            raise DataError(
                f"{file}: is text neither in UTF-8 nor in Windows-1252 ({error}). Save it as UTF-8."
            ) from error


def _separator(file: Path, text: str) -> str:
    if declared := re.match(r"sep=([,;\t])\r?\n", text):
        return declared[1]
    first = re.sub(r'"[^"]*"', "", re.split(r"\r\n|\n|\r", text, maxsplit=1)[0])
    counts = {separator: first.count(separator) for separator in _SEPARATORS}
    best = max(counts, key=lambda separator: counts[separator])
    if list(counts.values()).count(counts[best]) > 1:
        raise DataError(
            f"{file}: line 1 does not say what separates its columns: {first[:60]!r}. Expected commas, semicolons or"
            " tabs; or the line sep=; before it."
        )
    return best

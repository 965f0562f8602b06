"""Read a table that another program wrote, as columns or row by row. No cell is interpreted.

.csv and .tsv are separated by commas, semicolons or tabs, whichever the first line has most often; quotes are doubled.
.jsonl and .ndjson hold an object per line, .json a list of objects, an object of columns, or an object per line. Each
may be packed as .gz, also .parquet (`parquet`). Text is UTF-8, UTF-16 by its mark, or else Windows-1252, which is said.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from dualread import limits
from dualread.data.tables.content import encoding_of, lines_of, plain_names
from dualread.data.tables.parquet import read_parquet, read_rows
from dualread.errors import DataError, in_a_line

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_CHUNK = 50_000  # rows that are Python objects at one time
Wanted = Callable[[str], bool]  # whether the values of a column are needed


@dataclass(frozen=True, kw_only=True)
class RawTable:
    """A table whose cells nobody has interpreted."""

    source: Path | str  # the file, or a word for a table in memory, for messages
    frame: pl.DataFrame  # the columns that are wanted: String, List(String), Boolean, or numbers with their type
    rows: pl.Series  # int64 [n], the number of each row; 1 is the first below the header, and blank rows are counted
    columns: tuple[str, ...]  # the names of all columns in the file
    notes: tuple[str, ...] = ()  # sentences about how the table was read, where that is unusual
    separator: str | None = None  # what separates the cells of a .csv or .tsv
    # {why: number of rows, or of answers that a log records, that are left out}.
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class BrokenLine:
    """A line of JSON lines that holds no object, and why."""

    why: str


@dataclass(frozen=True, kw_only=True)
class Records:
    """A table as rows: (number, values) of each row, from 1, as `unit` ("line" or "row") counts them.

    In place of values, there may be a `BrokenLine`. Cells of .csv are stripped text or None; numbers and Booleans of
    JSON and .parquet are Python's. `form` says how the file is read: "semicolons, windows-1252".
    """

    rows: Iterator[tuple[int, Any]]
    unit: str
    form: str


def suffix_of(path: Path) -> str:
    """Return the suffix that names the form of a table, in lower case and without .gz."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def is_table(path: Path) -> bool:
    """Return whether a file is named as a table."""
    return suffix_of(path) in SUFFIXES


def read_file(path: Path, wanted: Wanted = lambda name: True) -> RawTable:
    """Read a table as columns; those that are not wanted take next to no memory."""
    if suffix_of(path) == ".parquet":
        frame, names, n = read_parquet(path, wanted)
        rows = pl.int_range(1, n + 1, eager=True)
        return RawTable(source=path, frame=frame, rows=rows, columns=tuple(names))
    text = _TextFile(path, str)
    names, numbers, parts, rows = {}, [], [], text.rows()
    while chunk := list(islice(rows, _CHUNK)):
        numbers += [row for row, _, _ in chunk]
        names |= dict.fromkeys(name for _, _, record in chunk for name in record)
        columns = {name: [record.get(name) for _, _, record in chunk] for name in filter(wanted, names)}
        parts.append(pl.DataFrame([column_of(path, name, values) for name, values in columns.items()]))
    names = dict.fromkeys(text.columns) | names
    try:
        frame = pl.concat(parts or [pl.DataFrame({name: [] for name in filter(wanted, names)})], how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        raise DataError(
            f"{path}: a column holds lists in some rows and texts in others. Write lists in all."
        ) from error
    notes = () if text.encoding == "utf-8-sig" else (f"read as {text.form}",)
    how = {"columns": tuple(names), "notes": notes, "separator": text.separator}
    return RawTable(source=path, frame=frame, rows=pl.Series(numbers, dtype=pl.Int64), **how)


def read_records(path: Path, *, every: bool = False) -> Records:
    """Read a table row by row; rows without any value are left out, and equal texts are one object.

    With `every`, each line counts: a `BrokenLine` stands for one of JSON lines that holds no object. A DataError may
    also come while rows are taken.
    """
    if suffix_of(path) == ".parquet":
        return Records(rows=_shared(enumerate(read_rows(path), 1)), unit="row", form="parquet")
    text = _TextFile(path, None, every=every)
    rows = ((line, record) for _, line, record in text.rows())
    return Records(rows=rows if every else _shared(rows), unit=text.unit, form=text.form)


def _shared(rows: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield rows that have a value, with one object for equal texts or bytes: questions, answers and images recur."""
    known: dict[str | bytes, str | bytes] = {}

    def shared(value: Any) -> Any:
        if isinstance(value, str | bytes):
            return known.setdefault(value, value)
        if isinstance(value, dict):
            return {name: shared(item) for name, item in value.items()}
        return [shared(item) for item in value] if isinstance(value, list) else value

    for number, record in rows:
        if any(value is not None for value in record.values()):
            yield number, shared(record)


class _TextFile:
    """A file of text: .csv, .tsv, or JSON. `unit` is "line" or "row", as the second number of a row counts."""

    def __init__(self, path: Path, numbers: Callable[[str], Any] | None, *, every: bool = False) -> None:
        if not is_table(path) and not path.is_dir():  # of which `encoding_of` says what it is
            known = ", ".join(SUFFIXES)
            raise DataError(f"{path}: unknown format {path.suffix!r}. Known: {known}, each also with .gz.")
        self._path, self._numbers, self._every = path, numbers, every
        self.encoding, self.unit, self.separator = encoding_of(path), "line", None
        self.columns: list[str] = []
        first = next(line for line in lines_of(path, self.encoding) if line.strip()).strip()
        if (suffix := suffix_of(path)) in (".csv", ".tsv"):
            self.separator = self._separator(first)
            self._rows, form = self._delimited, _SEPARATORS[self.separator]
        elif suffix != ".json" or (
            _is_object(first) and any(islice(filter(str.strip, lines_of(path, self.encoding)), 1, None))
        ):
            self._rows, form = self._json_lines, "JSON lines"
        else:
            self._rows, form, self.unit = self._json, "JSON", "row"
        known = {"utf-8-sig": "utf-8", "cp1252": "windows-1252"}
        self.form = f"{form}, {known.get(self.encoding, self.encoding)}"

    def rows(self) -> Iterator[tuple[int, int, Any]]:
        """Yield (row, line, values by column) of every row that is not blank; rows count from 1, blank ones too."""
        names: dict[str, str] = {}
        is_plain = True
        for row, line, record in self._rows():
            if isinstance(record, BrokenLine):
                yield row, line, record
                continue
            if row > limits.TABLE_ROWS:
                raise DataError(f"{self._path}: has more than {limits.TABLE_ROWS:,} rows. Split it.")
            if not isinstance(record, Mapping):
                raise DataError(f"{self._path}: {self.unit} {line}: is {_kind(record)}, expected an object.")
            if not record.keys() <= names.keys():
                names |= dict(zip(record, plain_names(self._path, record), strict=True))
                is_plain = all(name == plain for name, plain in names.items())
                if len(names) > limits.TABLE_COLUMNS:
                    raise DataError(f"{self._path}: has more than {limits.TABLE_COLUMNS:,} columns. Is it transposed?")
            if not is_plain:
                record = dict(zip(plain_names(self._path, record), record.values(), strict=True))
            yield row, line, record

    def _separator(self, first: str) -> str:
        counts = Counter(letter for letter in re.sub(r'"[^"]*"', "", first) if letter in _SEPARATORS).most_common(2)
        if len(counts) == 2 and counts[0][1] == counts[1][1]:
            raise DataError(
                f"{self._path}: line 1 does not say what separates its columns: {first[:60]!r}. Expected commas,"
                " semicolons or tabs."
            )
        return counts[0][0] if counts else ","

    def _delimited(self) -> Iterator[tuple[int, int, dict[str, str | None]]]:
        assert self.separator is not None
        n_of_lines: set[int] = set()  # of separators
        spans, last, row, has_escapes, separator = False, 0, -1, False, self.separator

        def counted() -> Iterator[str]:
            nonlocal has_escapes
            for line in lines_of(self._path, self.encoding):
                has_escapes = has_escapes or '\\"' in line
                if not line.isspace():
                    n_of_lines.add(line.count(separator))
                yield line

        csv.field_size_limit(limits.CELL_CHARACTERS)  # 131,072 by itself, which a long completion exceeds
        reader = csv.reader(counted(), delimiter=separator, strict=True)
        try:
            for cells in reader:
                spans, last = spans or reader.line_num > last + 1, reader.line_num
                cells = [cell.strip() for cell in cells]
                is_blank = not any(cells)
                if not self.columns:
                    self.columns = [] if is_blank else self._header(cells)
                    continue
                row += 1
                if is_blank:
                    continue
                while len(cells) > len(self.columns) and not cells[-1]:  # spreadsheets leave them behind
                    cells.pop()
                if len(cells) != len(self.columns):
                    raise csv.Error(f"has {len(cells)} cells, expected {len(self.columns)}")
                if has_escapes and any(f'\\"{end}' in cell for cell in cells for end in (separator, "\n")):
                    raise csv.Error("a backslash seems to escape a quote")
                yield row + 1, last, dict(zip(self.columns, [cell or None for cell in cells], strict=True))
        except csv.Error as error:
            raise DataError(
                f"{self._path}: line {reader.line_num}: not .csv ({error}). Put cells that contain"
                f" {separator!r} or a line break in double quotes, and double the quotes in them."
            ) from error
        if spans and n_of_lines == {len(self.columns) - 1} and len(self.columns) > 1:
            raise DataError(
                f"{self._path}: can be read in two ways, with different rows: double quotes enclose line breaks, and"
                " yet every line by itself has all columns. Write the table again, with every text in double quotes."
            )

    def _header(self, cells: list[str]) -> list[str]:
        names = [name.strip() for name in cells]
        while not names[-1]:
            names.pop()
        if len(names) > limits.TABLE_COLUMNS:
            raise DataError(f"{self._path}: has {len(names):,} columns, expected at most {limits.TABLE_COLUMNS:,}.")
        return plain_names(self._path, [name or f"Unnamed: {k}" for k, name in enumerate(names)])  # as pandas has it

    def _json_lines(self) -> Iterator[tuple[int, int, Any]]:
        blank: list[int] = []
        for number, line in enumerate(lines_of(self._path, self.encoding), 1):
            if not line.strip():
                blank.append(number)
                continue
            try:
                record = parsed(line, self._numbers)
            except (ValueError, RecursionError) as error:
                record = BrokenLine(f"not JSON ({_reason(error)}). Write one object per line.")
            if self._every:
                # Blank lines before others have their place.
                yield from ((k, k, BrokenLine("the line is empty. Write one object per line.")) for k in blank)
                blank = []
                if not isinstance(record, dict | BrokenLine):
                    record = BrokenLine(f"is {_kind(record)}, expected an object.")
            elif isinstance(record, BrokenLine):
                raise DataError(f"{self._path}: line {number}: {record.why}")
            yield number, number, record

    def _json(self) -> Iterator[tuple[int, int, Any]]:
        try:
            content = parsed("".join(lines_of(self._path, self.encoding)), self._numbers)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self._path}: not JSON ({_reason(error)}). Write it again.") from error
        if isinstance(content, dict):
            columns = {
                name: list(values.values()) if isinstance(values, dict) else values for name, values in content.items()
            }
            keys = {tuple(values) for values in content.values() if isinstance(values, dict)}  # {"0": ..., "1": ...}
            if len(keys) > 1 or not all(isinstance(values, list) for values in columns.values()):
                raise DataError(
                    f"{self._path}: is no table: {', '.join(list(content)[:10]) or 'nothing'} at its top. Expected a"
                    " list of objects, one object per line, or an object of columns."
                )
            if len({len(values) for values in columns.values()}) > 1:
                raise DataError(f"{self._path}: its columns have different lengths. Expected one value per row.")
            content = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
        elif not isinstance(content, list):
            raise DataError(f"{self._path}: is {_kind(content)}. Expected a list of objects.")
        yield from ((number, number, record) for number, record in enumerate(content, 1))


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def parsed(text: str, numbers: Callable[[str], Any] | None = None) -> Any:
    """Return the content of a JSON text; `numbers` reads the text of a number, by default as Python's int and float.

    Raises ValueError if the text is not JSON, a key occurs twice in one object, or an escape sequence is half of a
    surrogate pair, so that its text could not be written again; RecursionError if it is nested too deeply.
    """
    content = json.loads(
        text, object_pairs_hook=_unique_keys, parse_int=numbers, parse_float=numbers, parse_constant=numbers
    )
    if "\\ud" in text or "\\uD" in text:
        json.dumps(content, ensure_ascii=False).encode()
    return content


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(record := dict(pairs)) < len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {repeated!r} occurs twice in one object")
    return record


def _reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error).split("\n")[0][:200]


def _kind(value: Any) -> str:
    return "null" if value is None else "a list" if isinstance(value, list) else "a single value"


def column_of(source: Path | str, name: str, values: Iterable[Any]) -> pl.Series:
    """Return cells as a column of texts, or of lists of texts."""
    cells = list(values)
    if not set(map(type, cells)) <= {str, type(None)}:
        cells = [_cell(value) for value in cells]
    kinds = set(map(type, cells)) - {type(None)}
    if len(kinds) > 1:
        raise DataError(
            f"{source}: column {name!r} holds lists in some rows and single values in others. Write lists in all."
        )
    try:
        if list in kinds:
            return pl.Series(name, cells, dtype=pl.List(pl.String))
        texts = pl.Series(name, cells, dtype=pl.String if kinds else pl.Null)
        return texts.str.strip_chars().replace("", None) if kinds else texts
    except (ValueError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{source}: column {name!r} is not one of a table ({in_a_line(error)}).") from error


def _cell(value: Any) -> str | list[str | None] | None:
    """Return a value as its text, and a list as a list of texts."""
    if isinstance(value, list):
        return [item if item is None or isinstance(item, str) else str(_cell(item)) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)

"""Read a table that another program wrote, as columns or row by row.

The suffix says which reader is meant: .csv and .tsv, .json, .jsonl and .ndjson, .parquet; with or without .gz. Within a
kind, the content decides: what separates cells, the encoding, whether JSON is one list or one object per line.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from dualread.data.foreign_tables.content import LARGEST_COLUMNS, LARGEST_ROWS, is_packed, unpacked
from dualread.data.foreign_tables.delimited import Delimited, open_delimited
from dualread.data.foreign_tables.objects import open_objects
from dualread.errors import DataError, in_a_line

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
_CHUNK = 50_000  # rows that are Python objects at one time
_BATCH = 256  # rows of a .parquet, which may hold images
_PLAIN = ("commas, utf-8", "tabs, utf-8", "semicolons, utf-8", "JSON lines, utf-8", "a JSON list, utf-8", "parquet")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """A table as columns.

    Attributes:
        frame: The columns. Those of .csv are text, stripped, null where a cell is empty. Those of JSON are text
            (numbers as they are written, true and false), lists of text, or Python objects where values are of several
            kinds.
        rows: int64 [n], the number of each row: 1 is the first; blank lines are counted.
        form: In words, how the file was read: "semicolons, windows-1252".
    """

    frame: pl.DataFrame
    rows: pl.Series
    form: str

    @property
    def is_usual(self) -> bool:
        """Whether nobody needs to be told how it was read."""
        return self.form in _PLAIN


@dataclass(frozen=True, kw_only=True)
class Records:
    """A table as rows.

    Attributes:
        rows: (number, values) of each row, from 1, as `unit` counts them.
        unit: "line" or "row".
        form: In words, how the file was read.
    """

    rows: Iterator[tuple[int, dict[str, Any]]]
    unit: str
    form: str


def suffix_of(path: Path) -> str:
    """Return the suffix that names the form of a table, in lower case and without .gz."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def read_columns(path: Path) -> Columns:
    """Read a table as columns, in bounded memory beside them.

    Raises:
        DataError: The file cannot be read, has another form, too many columns or rows, or two ways to be read; the
            message names it.
    """
    kind = _kind(path)
    if kind == ".parquet":
        frame = _read_parquet(path)
        return Columns(frame=frame, rows=pl.int_range(1, len(frame) + 1, eager=True), form="parquet")
    if kind in (".csv", ".tsv"):
        table = open_delimited(path)
        frame, rows = _text_columns(table)
        return Columns(frame=frame, rows=rows, form=table.form)
    objects = open_objects(path)
    frame, rows = _object_columns(objects.rows(str))
    return Columns(frame=frame, rows=rows, form=f"{objects.form}, {objects.content.encoding_words}")


def read_records(path: Path) -> Records:
    """Read a table row by row; numbers and Booleans of JSON and parquet are Python's, cells of .csv are text.

    Equal texts, and equal bytes, are one object: questions, answers and images recur.

    Raises:
        DataError: As in `read_columns`; while rows are taken, too.
    """
    found = _records(path)
    return replace(found, rows=_with_shared_values(found.rows))


def _with_shared_values(rows: Iterator[tuple[int, dict[str, Any]]]) -> Iterator[tuple[int, dict[str, Any]]]:
    known: dict[str | bytes, str | bytes] = {}
    for number, record in rows:
        yield number, {name: _shared(value, known) for name, value in record.items()}


def _shared(value: Any, known: dict[str | bytes, str | bytes]) -> Any:
    if isinstance(value, str | bytes):
        return known.setdefault(value, value)
    if isinstance(value, dict):
        return {name: _shared(item, known) for name, item in value.items()}
    return [_shared(item, known) for item in value] if isinstance(value, list) else value


def _records(path: Path) -> Records:
    kind = _kind(path)
    if kind == ".parquet":
        rows = enumerate(_parquet_records(path), start=1)
        return Records(rows=rows, unit="row", form="parquet")
    if kind in (".csv", ".tsv"):
        table = open_delimited(path)
        cells = (
            (line, {name: cell.strip() or None for name, cell in zip(table.columns, row, strict=True)})
            for _, line, row in table.rows()
        )
        return Records(rows=cells, unit="line", form=table.form)
    objects = open_objects(path)
    form = f"{objects.form}, {objects.content.encoding_words}"
    return Records(rows=objects.rows(), unit=objects.unit, form=form)


def _kind(path: Path) -> str:
    if (kind := suffix_of(path)) not in SUFFIXES:
        raise DataError(f"{path}: unknown format {path.suffix!r}. Known: {', '.join(SUFFIXES)}, each also with .gz.")
    return kind


def _read_parquet(path: Path) -> pl.DataFrame:
    with _open_parquet(path) as (scan, _):
        return scan().collect()


def _parquet_records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a .parquet, a few at a time: each row holds its own copy of an image that others show, too."""
    with _open_parquet(path) as (scan, n):
        for start in range(0, n, _BATCH):
            yield from scan().slice(start, _BATCH).collect().iter_rows(named=True)


@contextmanager
def _open_parquet(path: Path) -> Iterator[tuple[Callable[[], pl.LazyFrame], int]]:
    """Give what scans a .parquet, and its number of rows.

    Raises:
        DataError: It cannot be read, also while it is scanned, or has too many columns or rows.
    """
    with unpacked(path) as stream:
        packed = stream.read() if is_packed(path) else None
    source = (lambda: path) if packed is None else (lambda: io.BytesIO(packed))
    try:
        n_columns = len(pl.scan_parquet(source(), glob=False).collect_schema())
        n = pl.scan_parquet(source(), glob=False).select(pl.len()).collect().item()
        if n_columns > LARGEST_COLUMNS or n > LARGEST_ROWS:
            raise DataError(
                f"{path}: has {n_columns:,} columns and {n:,} rows, expected at most {LARGEST_COLUMNS:,} and"
                f" {LARGEST_ROWS:,}."
            )
        yield lambda: pl.scan_parquet(source(), glob=False), n
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path}: is not a .parquet table ({in_a_line(error)}). Write it again.") from error


def _text_columns(table: Delimited) -> tuple[pl.DataFrame, pl.Series]:
    frames, numbers, rows = [], [], table.rows()
    while chunk := list(islice(rows, _CHUNK)):
        numbers.append(pl.Series([number for number, _, _ in chunk], dtype=pl.Int64))
        columns = zip(*(cells for _, _, cells in chunk), strict=True)
        named = zip(table.columns, columns, strict=True)
        frames.append(pl.DataFrame([pl.Series(name, column, dtype=pl.String) for name, column in named]))
    if not frames:
        return pl.DataFrame(schema=dict.fromkeys(table.columns, pl.String)), pl.Series([], dtype=pl.Int64)
    frame = pl.concat(frames).with_columns(pl.all().str.strip_chars().replace("", None))
    return frame, pl.concat(numbers)


def _object_columns(rows: Iterator[tuple[int, dict[str, Any]]]) -> tuple[pl.DataFrame, pl.Series]:
    """Return one column per key, null where an object lacks it or has null.

    A column holds text or lists of texts; `true` becomes "true". A column with other values, or with lists in some rows
    and single values in others, holds Python objects, because polars would turn a list among texts into one text.
    """
    parts: dict[str, list[pl.Series]] = {}
    numbers: list[int] = []
    while chunk := list(islice(rows, _CHUNK)):
        for name in dict.fromkeys(name for _, found in chunk for name in found):
            if name not in parts:
                parts[name] = [pl.Series(name, [None] * len(numbers), dtype=pl.Null)]
        for name, series in parts.items():
            series.append(column_of(name, [_texts(found.get(name)) for _, found in chunk]))
        numbers += [number for number, _ in chunk]
    return pl.DataFrame([_joined(name, series) for name, series in parts.items()]), pl.Series(numbers, dtype=pl.Int64)


def _joined(name: str, parts: Sequence[pl.Series]) -> pl.Series:
    kinds = {part.dtype for part in parts if part.null_count() < len(part)} or {pl.String()}
    kind = kinds.pop() if len(kinds) == 1 else pl.Object()
    if kind == pl.Object:
        return pl.Series(name, [value for part in parts for value in part.to_list()], dtype=pl.Object)
    empty = (pl.Series(name, [None] * len(part), dtype=kind) for part in parts)
    return pl.concat(part if part.dtype == kind else none for part, none in zip(parts, empty, strict=True))


def _texts(value: Any) -> Any:
    """Return `value` with its Booleans replaced by text; numbers are text already."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return [_texts(item) for item in value]
    if isinstance(value, dict):
        return {key: _texts(item) for key, item in value.items()}
    return value


def column_of(name: str, values: Sequence[Any]) -> pl.Series:
    """Return a column of text, of lists of texts, or of Python objects where the values are of several kinds."""
    if all(value is None or isinstance(value, str) for value in values):
        return pl.Series(name, values, dtype=pl.String)
    if all(value is None or _is_list_of_texts(value) for value in values):
        return pl.Series(name, values, dtype=pl.List(pl.String))
    return pl.Series(name, values, dtype=pl.Object)


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(item is None or isinstance(item, str) for item in value)

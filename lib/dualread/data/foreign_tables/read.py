"""Read a table that another program wrote, as columns or row by row.

The suffix says which reader is meant: .csv and .tsv, .json, .jsonl and .ndjson, .parquet; with or without .gz. Within a
kind, the content decides: what separates cells, the encoding, whether JSON is one list or one object per line. Spaces
around names of columns do not count.

Class labels of Hugging Face's datasets are numbers in a .parquet, whose names stand in its metadata. They are read by
their names: what 0 means is not in the numbers, since `correct` may have the names ("right", "wrong") in this order.
"""

import io
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from dualread.data.foreign_tables.content import LARGEST_COLUMNS, LARGEST_ROWS, is_packed, plain_names, unpacked
from dualread.data.foreign_tables.delimited import Delimited, open_delimited
from dualread.data.foreign_tables.objects import open_objects
from dualread.errors import DataError, in_a_line


def features_in(metadata: Mapping[Any, Any] | None) -> Mapping[str, Any]:
    """Return {column: what datasets says of it} from the metadata of a .parquet or of an arrow table."""
    found = {str(_text(key)): _text(value) for key, value in (metadata or {}).items()}.get("huggingface")
    try:
        return dict(json.loads(found or "{}")["info"]["features"])
    except (KeyError, RecursionError, TypeError, ValueError):
        return {}


def with_class_names(table: pl.LazyFrame, features: Mapping[str, Any]) -> pl.LazyFrame:
    """Return the table with the names of class labels in place of their numbers; -1, which is no label, is null."""
    schema = table.collect_schema()
    named = []
    for column, kind in schema.items():
        names, of_list = _names(features.get(column))
        if names is None:
            continue
        if not of_list and kind.is_integer():
            named.append(_named(pl.col(column), names).alias(column))
        elif of_list and isinstance(kind, pl.List) and kind.inner.is_integer():  # type: ignore[union-attr]
            named.append(pl.col(column).list.eval(_named(pl.element(), names)).alias(column))
    return table.with_columns(named) if named else table


def _named(numbers: pl.Expr, names: list[str]) -> pl.Expr:
    known = {**dict(enumerate(names)), -1: None}
    numbers = numbers.cast(pl.Int64)
    return numbers.replace_strict(known, default=numbers.cast(pl.String), return_dtype=pl.String)


def _names(feature: Any) -> tuple[list[str] | None, bool]:
    """Return the names of a class label, and whether the column holds lists of them; None for other columns."""
    inner = feature[0] if isinstance(feature, list) and len(feature) == 1 else None
    if isinstance(feature, dict) and feature.get("_type") in ("List", "Sequence", "LargeList"):
        inner = feature.get("feature")
    label = feature if inner is None else inner
    names = label.get("names") if isinstance(label, dict) and label.get("_type") == "ClassLabel" else None
    return (list(map(str, names)) if isinstance(names, list) else None), inner is not None


def _text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
_CHUNK = 50_000  # rows that are Python objects at one time
_BATCH = 256  # rows of a .parquet, which may hold images
_HELD = 8  # of these rows, as Python objects at one time
_LARGEST_TEXTS = 4_000_000_000  # bytes of one column
_LOOKED_AT, _MOST_LOOKED_AT = 10**9, 50_000  # bytes and rows whose lengths are added up at one time
_PLAIN = ("commas, utf-8", "tabs, utf-8", "semicolons, utf-8", "JSON lines, utf-8", "a JSON list, utf-8", "parquet")


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """A table as columns.

    Attributes:
        frame: The columns. Those of .csv are text, stripped, null where a cell is empty. Those of JSON are text
            (numbers as they are written, true and false), lists of text, or Python objects where values are of several
            kinds. Columns that are not used have no values, but the first of them, which is true where a row has any
            value in them.
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
        rows: (number, values) of each row, from 1, as `unit` counts them; of `read_every_row`, or a `BrokenLine`.
        unit: "line" or "row".
        form: In words, how the file was read.
    """

    rows: Iterator[tuple[int, Any]]
    unit: str
    form: str


def suffix_of(path: Path) -> str:
    """Return the suffix that names the form of a table, in lower case and without .gz."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def read_columns(path: Path, used: Collection[str] | None = None) -> TableColumns:
    """Read a table as columns, in bounded memory beside those that are used.

    Args:
        path: The file.
        used: Names of columns whose values are needed; None for all. Other columns take next to no memory.

    Raises:
        DataError: The file cannot be read, has another form, too many columns or rows, or two ways to be read; the
            message names it.
    """
    kind = _kind(path)
    if kind == ".parquet":
        frame = _read_parquet(path, used)
        return TableColumns(frame=frame, rows=pl.int_range(1, len(frame) + 1, eager=True), form="parquet")
    if kind in (".csv", ".tsv"):
        table = open_delimited(path)
        frame, rows = _text_columns(table, used)
        return TableColumns(frame=frame, rows=rows, form=table.form)
    objects = open_objects(path)
    frame, rows = _object_columns(objects.rows(str), used)
    return TableColumns(frame=frame, rows=rows, form=f"{objects.form}, {objects.content.encoding_words}")


def _is_used(name: str, used: Collection[str] | None) -> bool:
    return used is None or name in used


def _with_others(frame: pl.DataFrame, names: Sequence[str], filled: pl.Series) -> pl.DataFrame:
    """Return `frame` with columns for all of `names`, without the values of those that it lacks.

    Args:
        frame: The columns that are used.
        names: All columns of the file, in their order.
        filled: bool [n], whether a row has any value in the other columns.
    """
    others = [name for name in names if name not in frame.columns]
    if not others:
        return frame
    first = filled.replace_strict({True: True}, default=None, return_dtype=pl.Boolean)
    empty = pl.Series([None], dtype=pl.Null).new_from_index(0, len(filled))
    said = pl.DataFrame({name: first if name == others[0] else empty for name in others})
    return pl.concat([frame, said], how="horizontal").select(names)


def read_records(path: Path) -> Records:
    """Read a table row by row; numbers and Booleans of JSON and parquet are Python's, cells of .csv are text.

    Rows without any value are left out. Equal texts, and equal bytes, are one object: questions, answers and images
    recur.

    Raises:
        DataError: As in `read_columns`; while rows are taken, too.
    """
    found = _records(path, every=False)
    return replace(found, rows=_with_shared_values(found.rows))


def read_every_row(path: Path) -> Records:
    """Read a table as `read_records` does, with a row for every line, also for one that holds nothing.

    Raises:
        DataError: As in `read_records`, but a `BrokenLine` stands for a line of JSON lines that holds no object.
    """
    return _records(path, every=True)


def _with_shared_values(rows: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    known: dict[str | bytes, str | bytes] = {}
    for number, record in rows:
        if any(value is not None for value in record.values()):
            yield number, {name: _shared(value, known) for name, value in record.items()}


def _shared(value: Any, known: dict[str | bytes, str | bytes]) -> Any:
    if isinstance(value, str | bytes):
        return known.setdefault(value, value)
    if isinstance(value, dict):
        return {name: _shared(item, known) for name, item in value.items()}
    return [_shared(item, known) for item in value] if isinstance(value, list) else value


def _records(path: Path, *, every: bool) -> Records:
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
    return Records(rows=objects.rows(every=every), unit=objects.unit, form=form)


def _kind(path: Path) -> str:
    if (kind := suffix_of(path)) not in SUFFIXES:
        raise DataError(f"{path}: unknown format {path.suffix!r}. Known: {', '.join(SUFFIXES)}, each also with .gz.")
    return kind


def _read_parquet(path: Path, used: Collection[str] | None) -> pl.DataFrame:
    with _open_parquet(path) as (scan, n):
        names = scan().collect_schema().names()
        mine = [name for name in names if _is_used(name, used)]
        _refuse_long(path, scan().select(mine), n)
        frame = scan().select(mine).collect()
        if len(mine) == len(names):
            return frame
        filled = pl.repeat(True, n, dtype=pl.Boolean, eager=True)
        if not mine or frame.select(pl.all_horizontal(pl.all().is_null())).to_series().any():  # blank rows, perhaps
            others = pl.exclude(mine) if mine else pl.all()
            told = scan().select(pl.any_horizontal(others.is_not_null()).alias("filled"))
            filled = told.collect(engine="streaming").to_series()
        return _with_others(frame, names, filled)


def _refuse_long(path: Path, table: pl.LazyFrame, n_rows: int) -> None:
    """Refuse texts that are longer together than a table can be: in a .parquet, equal ones take no room.

    The first rows are looked at one by one, so that long ones end it at once.
    """
    kinds = table.collect_schema()
    texts = [name for name, kind in kinds.items() if kind in (pl.String, pl.Binary, pl.Categorical, pl.Enum)]
    lengths = [
        pl.col(name).bin.size() if kinds[name] == pl.Binary else pl.col(name).cast(pl.String).str.len_bytes()
        for name in texts
    ]
    seen, start, step = dict.fromkeys(texts, 0), 0, 1
    while texts and start < n_rows:
        found = table.slice(start, step).select(one.cast(pl.Int64).sum() for one in lengths).collect().row(0)
        start = min(start + step, n_rows)
        for name, n in zip(texts, found, strict=True):
            seen[name] += n
            if seen[name] > _LARGEST_TEXTS:
                raise DataError(
                    f"{path}: column {name!r} holds more than {_LARGEST_TEXTS:,} bytes of text up to row {start:,}."
                    " Shorten or split it."
                )
        step = min(_MOST_LOOKED_AT, 10 * step, max(1, _LOOKED_AT * start // (1 + sum(seen.values()))))


def _parquet_records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a .parquet, a few at a time: each row holds its own copy of an image that others show, too."""
    with _open_parquet(path) as (scan, n):
        for start in range(0, n, _BATCH):
            yield from scan().slice(start, _BATCH).collect().iter_rows(named=True, buffer_size=_HELD)


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
        names = pl.scan_parquet(source(), glob=False).collect_schema().names()
        features = features_in(pl.read_parquet_metadata(source()))
        n = pl.scan_parquet(source(), glob=False).select(pl.len()).collect().item()
        if len(names) > LARGEST_COLUMNS or n > LARGEST_ROWS:
            raise DataError(
                f"{path}: has {len(names):,} columns and {n:,} rows, expected at most {LARGEST_COLUMNS:,} and"
                f" {LARGEST_ROWS:,}."
            )
        plain = dict(zip(names, plain_names(path, names), strict=True))
        yield lambda: with_class_names(pl.scan_parquet(source(), glob=False), features).rename(plain), n
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path}: is not a .parquet table ({in_a_line(error)}). Write it again.") from error


def _text_columns(table: Delimited, used: Collection[str] | None) -> tuple[pl.DataFrame, pl.Series]:
    mine = [k for k, name in enumerate(table.columns) if _is_used(name, used)]
    others = sorted(set(range(len(table.columns))) - set(mine))
    frames, numbers, filled, rows = [], [], [], table.rows()
    while chunk := list(islice(rows, _CHUNK)):
        numbers.append(pl.Series([number for number, _, _ in chunk], dtype=pl.Int64))
        filled.append(pl.Series([any(cells[k].strip() for k in others) for _, _, cells in chunk], dtype=pl.Boolean))
        columns = ((table.columns[k], [cells[k] for _, _, cells in chunk]) for k in mine)
        frames.append(pl.DataFrame([pl.Series(name, column, dtype=pl.String) for name, column in columns]))
    if not frames:
        return pl.DataFrame(schema=dict.fromkeys(table.columns, pl.String)), pl.Series([], dtype=pl.Int64)
    frame = pl.concat(frames).with_columns(pl.all().str.strip_chars().replace("", None))
    return _with_others(frame, table.columns, pl.concat(filled)), pl.concat(numbers)


def _object_columns(
    rows: Iterator[tuple[int, dict[str, Any]]], used: Collection[str] | None
) -> tuple[pl.DataFrame, pl.Series]:
    """Return one column per key, null where an object lacks it or has null.

    A column holds text or lists of texts; `true` becomes "true". A column with other values, or with lists in some rows
    and single values in others, holds Python objects, because polars would turn a list among texts into one text.
    """
    parts: dict[str, list[pl.Series]] = {}
    names: dict[str, None] = {}
    numbers: list[int] = []
    filled: list[bool] = []
    while chunk := list(islice(rows, _CHUNK)):
        names.update(dict.fromkeys(name for _, found in chunk for name in found))
        for name in names:
            if name not in parts and _is_used(name, used):
                parts[name] = [pl.Series(name, [None] * len(numbers), dtype=pl.Null)]
        for name, series in parts.items():
            series.append(column_of(name, [_texts(found.get(name)) for _, found in chunk]))
        numbers += [number for number, _ in chunk]
        filled += [any(found[name] is not None for name in found if name not in parts) for _, found in chunk]
    frame = pl.DataFrame({name: _joined(name, series) for name, series in parts.items()})
    return _with_others(frame, list(names), pl.Series(filled, dtype=pl.Boolean)), pl.Series(numbers, dtype=pl.Int64)


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

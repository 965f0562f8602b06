"""Read a .parquet, packed or not, within limits.

Class labels of Hugging Face's datasets are numbers in a .parquet, whose names stand in its metadata. They are read by
their names: `correct` may have the names ("right", "wrong") in this order.
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from dualread import limits
from dualread.data.tables.content import is_packed, plain_names, unpacked
from dualread.errors import DataError, in_a_line

_KEPT = (pl.Boolean, pl.Binary, pl.Object)
_BATCH, _HELD = 256, 8  # rows, which may hold images, that are read, and made objects, at one time
_LOOKED_AT, _MOST_LOOKED_AT = 10**9, 50_000  # bytes and rows whose lengths are added up at one time


def class_names(metadata: Mapping[Any, Any] | None) -> Iterator[tuple[str, list[str]]]:
    """Yield (column, names) of the class labels that datasets declares in the metadata of a .parquet or arrow table."""
    texts = {
        key if isinstance(key, str) else key.decode(): value
        if isinstance(value, str)
        else value.decode("utf-8", "replace")
        for key, value in (metadata or {}).items()
    }
    try:
        features = dict(json.loads(texts.get("huggingface") or "{}")["info"]["features"])
    except (KeyError, RecursionError, TypeError, ValueError):
        return
    for column, feature in features.items():
        inner = feature[0] if isinstance(feature, list) and feature else feature
        inner = inner.get("feature", inner) if isinstance(inner, dict) else {}
        if isinstance(inner, dict) and inner.get("_type") == "ClassLabel" and isinstance(inner.get("names"), list):
            yield column, list(map(str, inner["names"]))


def with_class_names(table: pl.LazyFrame, metadata: Mapping[Any, Any] | None) -> pl.LazyFrame:
    """Return the table with the names of class labels in place of their numbers; -1, which is no label, is null."""
    schema, columns = table.collect_schema(), []

    def named(numbers: pl.Expr, names: list[str]) -> pl.Expr:
        numbers = numbers.cast(pl.Int64)
        known = {**dict(enumerate(names)), -1: None}
        return numbers.replace_strict(known, default=numbers.cast(pl.String), return_dtype=pl.String)

    for column, names in class_names(metadata):
        kind = schema.get(column)
        if kind is not None and kind.is_integer():
            columns.append(named(pl.col(column), names).alias(column))
        elif isinstance(kind, pl.List) and pl.Series(dtype=kind.inner).dtype.is_integer():
            columns.append(pl.col(column).list.eval(named(pl.element(), names)).alias(column))
    return table.with_columns(columns) if columns else table


@contextmanager
def _open_parquet(path: Path) -> Iterator[tuple[Callable[[], pl.LazyFrame], int]]:
    """Give what scans a .parquet, and its number of rows; a file that cannot be read is refused, also in the scan."""
    with unpacked(path) as stream:
        packed = stream.read() if is_packed(path) else None
    source = (lambda: path) if packed is None else (lambda: io.BytesIO(packed))
    try:
        names = pl.scan_parquet(source(), glob=False).collect_schema().names()
        metadata = pl.read_parquet_metadata(source())
        n = pl.scan_parquet(source(), glob=False).select(pl.len()).collect().item()
        if len(names) > limits.TABLE_COLUMNS or n > limits.TABLE_ROWS:
            raise DataError(
                f"{path}: has {len(names):,} columns and {n:,} rows, expected at most {limits.TABLE_COLUMNS:,} and"
                f" {limits.TABLE_ROWS:,}."
            )
        plain = dict(zip(names, plain_names(path, names), strict=True))
        yield lambda: with_class_names(pl.scan_parquet(source(), glob=False), metadata).rename(plain), n
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path}: is not a .parquet table ({in_a_line(error)}). Write or download it again.") from error


def read_parquet(path: Path, wanted: Callable[[str], bool]) -> tuple[pl.DataFrame, list[str], int]:
    """Return the columns that are wanted, the names of all, and the number of rows."""
    with _open_parquet(path) as (scan, n):
        names = scan().collect_schema().names()
        chosen = scan().select(list(filter(wanted, names)))
        _refuse_long(path, chosen, n)
        return plain_types(chosen).collect(), names, n


def _refuse_long(path: Path, table: pl.LazyFrame, n_rows: int) -> None:
    """Refuse texts that are longer together than a table can be; the first rows are looked at one by one."""
    kinds = table.collect_schema()
    texts = [name for name, kind in kinds.items() if kind in (pl.String, pl.Binary, pl.Categorical, pl.Enum)]
    lengths = [
        pl.col(name).bin.size() if kinds[name] == pl.Binary else pl.col(name).cast(pl.String).str.len_bytes()
        for name in texts
    ]
    n_bytes, start, step = dict.fromkeys(texts, 0), 0, 1
    while texts and start < n_rows:
        sizes = table.slice(start, step).select(length.cast(pl.Int64).sum() for length in lengths).collect().row(0)
        start = min(start + step, n_rows)
        for name, n in zip(texts, sizes, strict=True):
            n_bytes[name] += n
            if n_bytes[name] > limits.COLUMN_BYTES:
                raise DataError(
                    f"{path}: column {name!r} holds more than {limits.COLUMN_BYTES:,} bytes of text up to row"
                    f" {start:,}. Shorten or split it."
                )
        step = min(_MOST_LOOKED_AT, 10 * step, max(1, _LOOKED_AT * start // (1 + sum(n_bytes.values()))))


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a .parquet, a few at a time: each row holds its own copy of an image that others show, too."""
    with _open_parquet(path) as (scan, n):
        for start in range(0, n, _BATCH):
            yield from scan().slice(start, _BATCH).collect().iter_rows(named=True, buffer_size=_HELD)


def plain_types(table: pl.LazyFrame) -> pl.LazyFrame:
    """Return the table with texts, stripped and null where blank, in place of categories, dates and decimals."""
    columns = []
    for name, kind in table.collect_schema().items():
        if isinstance(kind, pl.List | pl.Array):
            columns.append(pl.col(name).cast(pl.List(pl.String)))
        elif kind == pl.Decimal or not (kind.is_numeric() or kind.is_nested() or kind in _KEPT):
            columns.append(pl.col(name).cast(pl.String).str.strip_chars().replace("", None))
    return table.with_columns(columns)

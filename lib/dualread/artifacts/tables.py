"""Read and write the parquet tables that `schema.columns` declares; a file that breaks its schema is refused."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import polars as pl

from dualread.errors import ArtifactError
from dualread.schema.columns import Schema

ROWS_PER_PART = 50_000
_REASON = "dualread.reason"


def write_table(path: Path, frame: pl.DataFrame, schema: Schema, *, reason: str | None = None) -> None:
    """Write `frame` as parquet, with its columns in the order of `schema`; equal values give equal bytes.

    With `reason`, the table has no rows, and `reason_of` returns why.

    Raises:
        ArtifactError: A column is missing, has another dtype, or holds a NaN or a forbidden null.
    """
    columns = _check(frame, schema, where=str(path))
    why = {} if reason is None else {_REASON: reason}
    frame.select(columns).write_parquet(path, compression="zstd", metadata={"dualread.schema": schema.name, **why})


def read_table(path: Path, schema: Schema, columns: Collection[str] = ()) -> pl.DataFrame:
    """Read a table that `write_table` wrote and check it against `schema`; with `columns`, these alone.

    Raises:
        ArtifactError: The file is missing, truncated or does not follow the schema.
    """
    if columns:
        schema = replace(schema, columns={name: schema.columns[name] for name in columns})
    try:
        frame = pl.read_parquet(path, columns=list(columns) or None)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ArtifactError(
            f"{path}: cannot be read as a {schema.name} table ({error})."
            " Delete the MANIFEST.json beside it and run the same command again."
        ) from error
    return frame.select(_check(frame, schema, where=str(path)))


def scan_table(path: Path, columns: Collection[str], **values: str) -> pl.LazyFrame:
    """Return these columns of a table, of the rows with these values; they are read when they are collected.

    It is for tables that are verified inputs, and larger than what is needed of them.
    """
    rows = pl.scan_parquet(path, glob=False)
    return (rows.filter(**values) if values else rows).select(columns)


def reason_of(path: Path) -> str | None:
    """Return why a table that `write_table` wrote has no rows; None for any other, also one that cannot be read."""
    try:
        return pl.read_parquet_metadata(path).get(_REASON)
    except (OSError, pl.exceptions.PolarsError):
        return None


def write_rows(folder: Path, rows: Iterable[dict], schema: Schema, *, rows_per_part: int = ROWS_PER_PART) -> int:
    """Write rows as <schema>.parquet or, if there are more than `rows_per_part`, as <schema>-00000.parquet, ...

    One part is in the memory at a time. The number of rows is returned.

    Raises:
        ArtifactError: As `from_rows` and `write_table`.
    """
    writer, n = RowWriter(folder, schema, rows_per_part=rows_per_part), 0
    for row in rows:
        writer.write(row)
        n += 1
    writer.close()
    return n


class RowWriter:
    """Writes what `write_rows` writes, of rows that come one by one; the last part is written by `close`."""

    def __init__(self, folder: Path, schema: Schema, *, rows_per_part: int = ROWS_PER_PART) -> None:
        self._folder, self._schema, self._most = folder, schema, rows_per_part
        self._rows: list[dict] = []
        self._n_parts = 0

    def write(self, row: dict) -> None:
        """Add a row.

        Raises:
            ArtifactError: As `from_rows` and `write_table`.
        """
        if len(self._rows) == self._most:
            self._write(f"{self._schema.name}-{self._n_parts:05d}")
            self._n_parts += 1
        self._rows.append(row)

    def close(self) -> None:
        """Write the rest, or a table without rows if there are none.

        Raises:
            ArtifactError: As `from_rows` and `write_table`.
        """
        name = self._schema.name
        self._write(f"{name}-{self._n_parts:05d}" if self._n_parts else name)

    def _write(self, name: str) -> None:
        part, self._rows = from_rows(self._rows, self._schema), []
        write_table(self._folder / f"{name}.parquet", part, self._schema)


def read_parts(folder: Path, schema: Schema, columns: Collection[str] = ()) -> pl.DataFrame:
    """Read what `write_rows` wrote, with the rows in the same order; only these columns if there are any.

    Raises:
        ArtifactError: As `each_part`.
    """
    return pl.concat(each_part(folder, schema, columns))


def each_part(folder: Path, schema: Schema, columns: Collection[str] = ()) -> Iterator[pl.DataFrame]:
    """Yield the tables that `write_rows` wrote, one after the other, with only these columns if there are any.

    Raises:
        ArtifactError: There is no such table, a part before the last is missing, or `read_table` refuses one.
    """
    parts = sorted(folder.glob(f"{schema.name}-*.parquet")) or [folder / f"{schema.name}.parquet"]
    expected = [f"{schema.name}-{number:05d}.parquet" for number in range(len(parts))]
    if (names := [path.name for path in parts]) != expected and names != [f"{schema.name}.parquet"]:
        raise ArtifactError(
            f"{folder}: parts {', '.join(names)}; expected {', '.join(expected)}. Delete the folder and run"
            " the same command again."
        )
    return (read_table(path, schema, columns) for path in parts)


def empty_table(schema: Schema) -> pl.DataFrame:
    """Return a table of `schema` without rows."""
    return pl.DataFrame(schema={name: column.dtype for name, column in schema.columns.items()})


def from_rows(rows: list[dict], schema: Schema) -> pl.DataFrame:
    """Build a table of `schema` from one mapping per row; missing keys become null (and are refused on write).

    Raises:
        ArtifactError: A row has a key that is no column of the schema.
    """
    if unknown := sorted({key for row in rows for key in row} - schema.columns.keys()):
        raise ArtifactError(f"{schema.name}: no column {', '.join(unknown)}. Known: {', '.join(schema.columns)}.")
    return pl.DataFrame(rows, schema={name: column.dtype for name, column in schema.columns.items()}, strict=True)


def from_many_rows(rows: Iterable[dict], schema: Schema) -> pl.DataFrame:
    """Build the table that `from_rows` builds, with few of the mappings in the memory at once.

    Raises:
        ArtifactError: As `from_rows`.
    """
    rest = iter(rows)
    parts = iter(lambda: [*islice(rest, ROWS_PER_PART)], [])
    return pl.concat([empty_table(schema), *(from_rows(part, schema) for part in parts)], rechunk=True)


def _check(frame: pl.DataFrame, schema: Schema, *, where: str) -> list[str]:
    columns = schema.columns
    for name, column in columns.items():
        if name not in frame.columns:
            raise ArtifactError(f"{where}: column {name!r} is missing, expected {', '.join(columns)}.")
        if frame.schema[name] != column.dtype:
            raise ArtifactError(f"{where}: column {name!r} is {frame.schema[name]}, expected {column.dtype}.")
        if not column.nullable and (n_null := frame[name].null_count()):
            raise ArtifactError(f"{where}: column {name!r} holds {n_null} nulls, expected none: {column.meaning}.")
        if column.dtype.is_float() and frame[name].is_nan().any():
            raise ArtifactError(f"{where}: column {name!r} holds NaN, expected null for undefined values.")
    return list(columns)


def for_spreadsheets(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table for a CSV that people open: a text that a spreadsheet would compute begins with an apostrophe.

    These are texts that begin with =, +, -, @, a tab or a carriage return; numbers, also those with an interval or a
    mark such as †s, stay as they are.
    """
    number = r"^[-+](?:[\d\s.,;()\[\]±%†‡°<≤≥*–—−+-]|†[sd]+)*$"
    changed = [
        pl.when(pl.col(name).str.contains(r"^[=+\-@\t\r]") & ~pl.col(name).str.contains(number))
        .then(pl.lit("'") + pl.col(name))
        .otherwise(pl.col(name))
        .alias(name)
        for name in frame.select(pl.selectors.string()).columns
    ]
    return frame.with_columns(changed)

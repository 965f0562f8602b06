"""Read and write the parquet tables of `schemas`; a file that breaks its schema is refused by name."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import polars as pl

from dualread.artifacts.schemas import Schema
from dualread.errors import ArtifactError

ROWS_PER_PART = 50_000
_REASON = "dualread.reason"


def write_table(path: Path, frame: pl.DataFrame, schema: Schema, *, reason: str | None = None) -> None:
    """Write `frame` as parquet, with its columns in the order of `schema`; equal values give equal bytes.

    Args:
        path: The file.
        frame: The rows.
        schema: What the table must look like.
        reason: Why the table has no rows, which `reason_of` returns.

    Raises:
        ArtifactError: A column is missing, has another dtype, or holds a NaN or a forbidden null.
    """
    columns = _check(frame, schema, where=str(path))
    why = {} if reason is None else {_REASON: reason}
    frame.select(columns).write_parquet(path, compression="zstd", metadata={"dualread.schema": schema.name, **why})


def read_table(path: Path, schema: Schema, columns: Collection[str] = ()) -> pl.DataFrame:
    """Read a table that `write_table` wrote and check it against `schema`.

    Args:
        path: The file.
        schema: What the table must look like.
        columns: Only these columns are read and checked; all if empty.

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


def reason_of(path: Path) -> str | None:
    """Return why a table that `write_table` wrote has no rows; None for any other, also one that cannot be read."""
    try:
        return pl.read_parquet_metadata(path).get(_REASON)
    except (OSError, pl.exceptions.PolarsError):
        return None


def write_parts(folder: Path, frame: pl.DataFrame, schema: Schema, *, rows_per_part: int = ROWS_PER_PART) -> None:
    """Write `frame` as <schema>.parquet or, if it has more than `rows_per_part` rows, as <schema>-00000.parquet, ...

    Raises:
        ArtifactError: As `write_table`.
    """
    if len(frame) <= rows_per_part:
        write_table(folder / f"{schema.name}.parquet", frame, schema)
        return
    for number, part in enumerate(frame.iter_slices(rows_per_part)):
        write_table(folder / f"{schema.name}-{number:05d}.parquet", part, schema)


def write_rows(folder: Path, rows: Iterable[dict], schema: Schema, *, rows_per_part: int = ROWS_PER_PART) -> int:
    """Write what `write_parts` writes of these rows, with two parts in the memory at most; return their number.

    Raises:
        ArtifactError: As `from_rows` and `write_table`.
    """
    part, number, written = empty_table(schema), 0, 0
    for following in _tables(rows, schema, rows_per_part):
        if written := written + part.height:
            write_table(folder / f"{schema.name}-{number:05d}.parquet", part, schema)
            number += 1
        part = following
    name = f"{schema.name}-{number:05d}" if number else schema.name
    write_table(folder / f"{name}.parquet", part, schema)
    return written + part.height


def read_parts(folder: Path, schema: Schema) -> pl.DataFrame:
    """Read what `write_parts` wrote, with the rows in the same order.

    Raises:
        ArtifactError: There is no such table, a part before the last is missing, or `read_table` refuses one.
    """
    parts = sorted(folder.glob(f"{schema.name}-*.parquet"))
    if not parts:
        return read_table(folder / f"{schema.name}.parquet", schema)
    expected = [f"{schema.name}-{number:05d}.parquet" for number in range(len(parts))]
    if (found := [path.name for path in parts]) != expected:
        raise ArtifactError(
            f"{folder}: parts {', '.join(found)}; expected {', '.join(expected)}. Delete the folder and run"
            " the same command again."
        )
    return pl.concat(read_table(path, schema) for path in parts)


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
    return pl.concat([empty_table(schema), *_tables(rows, schema, ROWS_PER_PART)], rechunk=True)


def _tables(rows: Iterable[dict], schema: Schema, n: int) -> Iterator[pl.DataFrame]:
    rest = iter(rows)
    while part := [*islice(rest, n)]:
        yield from_rows(part, schema)


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
    number = r"^[-+](?:[\d\s.,;()\[\]±%†‡°≤≥*–—−+-]|†[sd]+)*$"
    changed = [
        pl.when(pl.col(name).str.contains(r"^[=+\-@\t\r]") & ~pl.col(name).str.contains(number))
        .then(pl.lit("'") + pl.col(name))
        .otherwise(pl.col(name))
        .alias(name)
        for name in frame.select(pl.selectors.string()).columns
    ]
    return frame.with_columns(changed)

"""A plain table: a file that another program wrote: .csv, .json, .parquet and others."""

from collections import Counter
from collections.abc import Collection
from pathlib import Path

import polars as pl

from dualread import plugins
from dualread.commands.evaluate.given import Given
from dualread.data.foreign_tables.read import SUFFIXES, read_columns, suffix_of
from dualread.errors import DataError

_LISTED = 10  # columns that an error lists


def read_given(path: Path, used: Collection[str] | None = None) -> Given:
    """Read a table; how is a note, unless it is as usual.

    Args:
        path: The file.
        used: Names of columns whose values are needed; None for all.

    Raises:
        DataError: The file cannot be read, has another format, has two columns of one name, or has no rows.
    """
    read_by = [name for name in plugins.known("logs") if path.suffix in plugins.declared("logs", name, "SUFFIXES")]
    logs = " or ".join(f"--from {name.replace('_', '-')}" for name in read_by)
    try:
        read = read_columns(path, used)
    except DataError as error:
        if (suffix_of(path) in SUFFIXES and path.suffix != ".json") or not read_by:
            raise
        raise DataError(f"{error} If it is a log of another harness, add {logs}.") from error
    notes = () if read.is_usual else (f"read as {read.form}",)
    return given_of(read.frame, path, rows=read.rows, notes=notes)


def given_of(
    frame: pl.DataFrame, path: Path | str, *, rows: pl.Series | None = None, notes: tuple[str, ...] = ()
) -> Given:
    """Return the rows of a table that `path` names in messages; rows without any value are left out.

    Args:
        frame: The table.
        path: Its name.
        rows: The number of each row; 1, 2, ... by default.
        notes: Sentences about how it was read.

    Raises:
        DataError: Two columns have the same name, or there are no rows.
    """
    names = [name.strip() for name in frame.columns]
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise DataError(f"{path}: column {twice[0]!r} occurs more than once. Rename or delete the others.")
    filled = pl.Series([], dtype=pl.Boolean)  # blank lines at the end are common
    if names:
        filled = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
    if not filled.any():
        listed = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
        raise DataError(
            f"{path}: has no rows. Expected one for each answer or pair; found columns: {listed or 'none'}."
        )
    rows = pl.int_range(1, len(filled) + 1, eager=True) if rows is None else rows
    frame = frame.rename(dict(zip(frame.columns, names, strict=True))).filter(filled)
    return Given(path=path, frame=frame, rows=rows.filter(filled), notes=notes)

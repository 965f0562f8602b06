"""Read answers, pairs and calibration answers, wherever they come from, and check each by the contract."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unicodedata import normalize

import polars as pl

from dualread import plugins
from dualread.apps.evaluate.log import LogOptions, read_logged
from dualread.data.tables.checks import CheckedTable, checked
from dualread.data.tables.claims import named_claims
from dualread.data.tables.contract import ANSWERS, OF_CLAIMS, PAIRS, WIDE, WIDE_SCORE, ColumnsRead, TableOptions
from dualread.data.tables.files import RawTable, read_file
from dualread.data.tables.hub import is_address, local_file, read_address
from dualread.data.tables.memory import read_frame
from dualread.errors import ConfigError, DataError, did_you_mean


def read_tables(
    predictions: Any,
    pairs: Any,
    calibration: Any,
    options: TableOptions,
    log: LogOptions,
    only: Mapping[str, Sequence[str]],
) -> dict[str, CheckedTable]:
    """Return predictions, pairs and calibration, those that are given; of `only`, just the rows of these values.

    Raises DataError if a table cannot be read, or is not as the contract says; ConfigError if an option is not so.
    """
    if log.log_format is not None and options.options:
        raise ConfigError("--options: needs a table; the readers of logs (--from) know the options.")
    of_answers, of_pairs = options.reading(ANSWERS), options.reading(PAIRS)
    sources = {"predictions": (predictions, of_answers), "pairs": (pairs, of_pairs)}
    raw: dict[str, tuple[RawTable, ColumnsRead]] = {}
    for name, (source, read) in {**sources, "calibration": (calibration, of_answers)}.items():
        is_log = log.log_format is not None and read is of_answers
        if source is not None:
            raw[name] = (_read_log(source, name, read, log) if is_log else _read_table(source, name, read), read)
    _check_mapping(options.columns, list(raw.values()))
    unused = {name: _unused(read, table.columns) for name, (table, read) in raw.items()}
    tables = {
        name: replace(checked(table, read, claims=named_claims), unused=unused[name])
        for name, (table, read) in raw.items()
    }
    for column, values in only.items():
        if values:
            tables = _only(tables, column, values)
    return tables


def _read_table(source: Any, name: str, read: ColumnsRead) -> RawTable:
    """Read the columns of a table that the contract and the user name."""

    def wanted(column: str) -> bool:
        return column in read

    if is_address(source):
        return read_address(source, wanted)
    if not isinstance(source, str | Path):
        return read_frame(source, name, wanted)
    try:
        return read_file(Path(source), wanted)
    except DataError as error:
        suffixes = {log: plugins.declared("logs", log, "SUFFIXES") for log in plugins.known("logs")}
        advice = " or ".join(
            f"--from {log.replace('_', '-')}" for log, known in suffixes.items() if Path(source).suffix in known
        )
        if not advice or Path(source).suffix == ".csv":
            raise
        raise DataError(f"{error} If it is a log of another harness, add {advice}.") from error


def _read_log(source: Any, name: str, read: ColumnsRead, log: LogOptions) -> RawTable:
    """Read a log as a table with the documented columns, and with those that the user names."""
    if not isinstance(source, str | Path):
        raise ConfigError(f"{name}: {type(source).__name__}; a log (--from {log.log_format}) is given by its path.")
    path = local_file(str(source)) if is_address(source) else Path(source)
    named = {"confidence" if name == "score" else name: column for name, column in read.names.items()}
    return read_logged(path, log, columns=named, cluster=read.options.cluster, by=read.options.by)


def _check_mapping(columns: Mapping[str, str], tables: Sequence[tuple[RawTable, ColumnsRead]]) -> None:
    """Refuse a mapping that names a column that is not read, or one that no table has."""
    for name, column_name in columns.items():
        wide = [ANSWERS] if name.startswith((WIDE, WIDE_SCORE)) else []
        concerned = [table for table, read in tables if read.declared in wide or name in read.declared_names]
        if not concerned:
            known = sorted({column for _, read in tables for column in read.declared_names})
            raise ConfigError(
                f"--columns {name}={column_name}: no column {name!r} is read. Known: {', '.join(known)}."
                f"{did_you_mean(name, known)} Write NAME=YOURS, such as confidence={column_name}."
            )
        columns_of_all = [column for table in concerned for column in table.columns]
        if column_name not in columns_of_all and column_name.removeprefix("-") not in columns_of_all:
            raise ConfigError(
                f"--columns {name}={column_name}: {concerned[0].source} has no column {column_name!r}. Found:"
                f" {', '.join(concerned[0].columns)}.{did_you_mean(column_name, columns_of_all)}"
            )


def _unused(read: ColumnsRead, columns: Sequence[str]) -> list[str]:
    """Return those of a table's columns that are not read, or are replaced by others."""
    options, users = read.options, set(read.options.columns.values())
    replaced = {name for name, column in read.names.items() if name not in users and name != column}
    # A column of a method counts where no other column holds confidences.
    if read.declared is not ANSWERS or {"confidence", "score", "method"} & {*columns, *options.columns}:
        replaced |= {name for name in columns if name.startswith((WIDE, WIDE_SCORE)) and name not in users}
    if not options.has_claims(columns):
        replaced |= {*OF_CLAIMS} - {*options.by}
    return [column for column in columns if column not in read or column in replaced]


def _only(tables: Mapping[str, CheckedTable], column: str, values: Sequence[str]) -> dict[str, CheckedTable]:
    """Return the rows with these values in a column; all of a table of pairs or of calibration without it."""
    answers = tables["predictions"]
    answers.need(column, f"by which --{column} chooses")
    known = sorted(set(answers.frame[column]))
    values = [normalize("NFC", value) for value in values]  # as tables are read
    if unknown := [value for value in values if value not in known]:
        raise ConfigError(
            f"--{column} {unknown[0]}: not in {answers.source}. Known: {', '.join(known)}."
            f"{did_you_mean(unknown[0], known)}"
        )
    chosen = pl.col(column).is_in(values)
    return {
        name: replace(table, frame=table.frame.filter(chosen)) if table.has(column) else table
        for name, table in tables.items()
    }

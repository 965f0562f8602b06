"""Read a table in memory: a data frame of polars, pandas, pyarrow or datasets, a mapping of columns, a list of rows.

Values mean what they mean in a file: a float32 .9 is .9, True is true, and NaN, NaT and pd.NA are missing values.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from dualread import limits
from dualread.data.tables.content import plain_names
from dualread.data.tables.files import RawTable, Wanted, column_of
from dualread.data.tables.parquet import plain_types, with_class_names
from dualread.errors import ConfigError, DataError, in_a_line
from dualread.evaluation.decimals import as_float64

_EXPECTED = "expected a data frame (polars, pandas, pyarrow, datasets), a mapping of columns, a list of rows, or a path"


def read_frame(table: Any, name: str, wanted: Wanted = lambda column: True) -> RawTable:
    """Return a table in memory, which messages call `name`; `wanted` is as in `read_file`."""
    try:
        table = _as_polars(table, name)
        if not isinstance(table, pl.DataFrame):
            columns = list(_columns(table, name))
            names = plain_names(name, (column for column, _ in columns))
            series = [_series(column, values, name) for column, values in columns[: limits.TABLE_COLUMNS + 1]]
            if len({len(column) for column in series}) > 1:
                lengths = ", ".join(f"{column.name}: {len(column)}" for column in series[:10])
                raise DataError(f"{name}: is not a table: its columns have different lengths ({lengths}).")
            table = pl.DataFrame(series)
        else:
            names = plain_names(name, table.columns)
        if len(names) > limits.TABLE_COLUMNS:
            raise DataError(f"{name}: has {len(names):,} columns, expected at most {limits.TABLE_COLUMNS:,}.")
        table = table.rename(dict(zip(table.columns, names, strict=True)))
        frame = plain_types(table.lazy().select(list(filter(wanted, names)))).collect()
    except (OSError, OverflowError, RecursionError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{name}: is not a table ({in_a_line(error)}); {_EXPECTED}.") from error
    return RawTable(source=name, frame=frame, rows=pl.int_range(1, len(table) + 1, eager=True), columns=tuple(names))


def _as_polars(table: Any, name: str) -> Any:
    """Return frames of polars, pyarrow and datasets as a frame of polars; anything else as it is."""
    package = type(table).__module__.partition(".")[0]
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    if package == "datasets":
        if isinstance(table, Mapping):
            splits = ", ".join(map(str, table))
            raise ConfigError(f"{name}: has several splits: {splits}. Give one of them, such as data['test'].")
        if not all(hasattr(table, what) for what in ("with_format", "column_names", "__len__")):
            raise DataError(f"{name}: {type(table).__name__} cannot be read at once; {_EXPECTED}.")
        table, package = table.with_format("arrow")[:], "pyarrow"
    if package == "pyarrow" and hasattr(table, "schema"):
        plain_names(name, table.schema.names)
        return with_class_names(pl.DataFrame(pl.from_arrow(table)).lazy(), table.schema.metadata).collect()
    return table


def _columns(table: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(table, Mapping):
        yield from ((str(column), values) for column, values in table.items())
    elif hasattr(table, "iloc") and hasattr(table, "columns"):  # pandas, or what has its form
        names = [str(column) for column in table.columns]
        for level, index in enumerate(table.index.names):  # an index with a name is a column
            if index is not None and str(index) not in names:
                yield str(index), table.index.get_level_values(level)
        yield from ((column, table.iloc[:, k]) for k, column in enumerate(names))
    elif isinstance(table, Sequence) and not isinstance(table, str) and all(isinstance(row, Mapping) for row in table):
        for column in dict.fromkeys(column for row in table for column in row):
            yield str(column), [row.get(column) for row in table]
    else:
        raise DataError(f"{name}: {type(table).__name__}; {_EXPECTED}.")


def _series(column: str, values: Any, name: str) -> pl.Series:
    """Return one column: numbers as such, anything else as texts or lists of texts."""
    if isinstance(values, pl.Series):
        return values.alias(column)
    is_column = hasattr(values, "__array__") or hasattr(values, "__iter__")
    if isinstance(values, str | bytes | Mapping) or not is_column:
        raise DataError(f"{name}: column {column!r} is one {type(values).__name__}; expected one value per row.")
    if (detach := getattr(values, "detach", None)) is not None:  # a tensor
        values = detach().cpu()
    if getattr(values, "ndim", 1) != 1:
        raise DataError(f"{name}: column {column!r} has the shape {tuple(values.shape)}; expected one value per row.")
    kind = getattr(values, "dtype", None)
    if (plain := getattr(kind, "numpy_dtype", None)) is not None and plain.kind == "f":  # pandas's nullable numbers
        values, kind = values.to_numpy(dtype=plain, na_value=np.nan), plain
    letter = kind.kind if isinstance(kind, np.dtype) and kind.itemsize <= 8 else ""
    if letter == "f" or str(kind).startswith(("torch.float", "torch.bfloat")):
        return pl.Series(column, as_float64(values, name=f"column {column!r}"), nan_to_null=True)
    if letter in tuple("biu") or str(kind).startswith("torch."):
        return pl.Series(column, np.asarray(values))
    plain = [_plain(value) for value in values]
    if all(isinstance(value, float | None) for value in plain):
        return pl.Series(column, plain, dtype=pl.Float64)
    return column_of(name, column, plain)


def _plain(value: Any) -> Any:
    """Return a value as one of JSON; None for what stands for a missing value."""
    if isinstance(value, str | None):
        return value
    if type(value).__name__ in ("NAType", "NaTType") or value is np.ma.masked:
        return None
    if isinstance(value, list | tuple | set | frozenset | pl.Series):
        return [_plain(item) for item in value]
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # of numpy or torch
        if getattr(value, "ndim", 0):
            return [_plain(item) for item in value]
        if "float" in str(value.dtype):
            value = float(as_float64(value).reshape(()))
        elif np.asarray(value).dtype.kind == "M":
            return None if np.isnat(value) else str(value)
        else:
            value = value.item()
    return None if value != value and not isinstance(value, Mapping) else value

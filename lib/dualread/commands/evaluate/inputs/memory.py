"""A table in memory: a data frame of polars, pandas, pyarrow or Hugging Face's datasets, a mapping of columns, rows.

Values mean what they mean in a file: a float32 .9 is .9, True is true, and NaN, NaT and pd.NA are missing values.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from dualread.commands.evaluate.given import Given
from dualread.commands.evaluate.inputs.table import given_of
from dualread.data.foreign_tables.class_names import features_in, with_class_names
from dualread.data.foreign_tables.content import LARGEST_COLUMNS
from dualread.data.foreign_tables.read import column_of
from dualread.errors import ConfigError, DataError, in_a_line
from dualread.evaluation.decimals import as_float64

_EXPECTED = "expected a data frame (polars, pandas, pyarrow, datasets), a mapping of columns, a list of rows, or a path"


def given_in_memory(table: Any, name: str) -> Given:
    """Return the rows of a table in memory.

    Raises:
        DataError: It is none of these, a column is none, two have the same name, they differ in length, or there are no
            rows.
        ConfigError: It has several splits.
    """
    table = _known_frame(table, name)
    if isinstance(table, pl.DataFrame):
        return given_of(table, name)
    columns = list(_columns(table, name))
    names = [column for column, _ in columns]
    if twice := [one for k, one in enumerate(names[:LARGEST_COLUMNS]) if one in names[:k]]:
        raise DataError(f"{name}: column {twice[0]!r} occurs more than once. Rename or delete the others.")
    if len(names) > LARGEST_COLUMNS:
        raise DataError(f"{name}: has {len(names):,} columns, expected at most {LARGEST_COLUMNS:,}.")
    series = [_series(column, values, name) for column, values in columns]
    if len({len(one) for one in series}) > 1:
        lengths = ", ".join(f"{one.name}: {len(one)}" for one in series[:10])
        raise DataError(f"{name}: is not a table: its columns have different lengths ({lengths}).")
    return given_of(pl.DataFrame(series), name)


def _known_frame(table: Any, name: str) -> Any:
    """Return frames of other packages as polars's; anything else as it is."""
    package = type(table).__module__.partition(".")[0]
    try:
        if isinstance(table, pl.LazyFrame):
            return table.collect()
        if package == "datasets":
            if isinstance(table, Mapping):
                splits = ", ".join(map(str, table))
                raise ConfigError(f"{name}: has several splits: {splits}. Give one of them, such as data['test'].")
            if not hasattr(table, "with_format") or not hasattr(table, "column_names") or not hasattr(table, "__len__"):
                raise DataError(f"{name}: {type(table).__name__} cannot be read at once; {_EXPECTED}.")
            table, package = table.with_format("arrow")[:], "pyarrow"
        if package == "pyarrow" and hasattr(table, "schema"):
            names = list(table.schema.names)
            if twice := [one for k, one in enumerate(names) if one in names[:k]]:
                raise DataError(f"{name}: column {twice[0]!r} occurs more than once. Rename or delete the others.")
            features = features_in(table.schema.metadata)
            return with_class_names(pl.DataFrame(pl.from_arrow(table)).lazy(), features).collect()
    except (OSError, pl.exceptions.PolarsError, ValueError, TypeError) as error:
        raise DataError(f"{name}: is not a table ({in_a_line(error)}); {_EXPECTED}.") from error
    return table


def _columns(table: Any, name: str) -> Iterator[tuple[str, Any]]:
    if fields := getattr(getattr(table, "dtype", None), "names", None):  # a record array
        yield from ((column, table[column]) for column in fields)
    elif isinstance(table, Mapping):
        yield from ((str(column), values) for column, values in table.items())
    elif hasattr(table, "iloc") and hasattr(table, "columns"):  # pandas, or what has its form
        names = [str(column) for column in table.columns]
        for level, own in enumerate(table.index.names):  # an index with a name is a column
            if own is not None and str(own) not in names:
                yield str(own), table.index.get_level_values(level)
        yield from ((column, table.iloc[:, k]) for k, column in enumerate(names))
    elif isinstance(table, Sequence) and not isinstance(table, str) and all(isinstance(row, Mapping) for row in table):
        for column in dict.fromkeys(column for row in table for column in row):
            yield str(column), [row.get(column) for row in table]
    else:
        raise DataError(f"{name}: {type(table).__name__}; {_EXPECTED}.")


def _series(column: str, values: Any, name: str) -> pl.Series:
    """Return one column: numbers as such, anything else as text or lists of texts."""
    if isinstance(values, pl.Series):
        return values.alias(column)
    if not _is_column(values):
        raise DataError(f"{name}: column {column!r} is one {type(values).__name__}; expected one value per row.")
    if (detach := getattr(values, "detach", None)) is not None:  # a tensor
        values = detach().cpu()
    kind = getattr(values, "dtype", None)
    if getattr(values, "ndim", 1) != 1:
        raise DataError(f"{name}: column {column!r} has the shape {tuple(values.shape)}; expected one value per row.")
    try:
        of_numpy: Any = getattr(kind, "numpy_dtype", None)
        if _is_plain(of_numpy, "f"):  # pandas's nullable numbers, and those of pyarrow in it
            values, kind = values.to_numpy(dtype=of_numpy, na_value=np.nan), of_numpy
        if str(kind).startswith("torch.float") or str(kind) == "torch.bfloat16" or _is_plain(kind, "f"):
            return pl.Series(column, as_float64(values), nan_to_null=True)
        if _is_plain(kind, "biu") or str(kind).startswith("torch."):
            return pl.Series(column, np.asarray(values))
        return column_of(column, [_plain(value) for value in values])
    except (TypeError, ValueError, OverflowError, RecursionError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{name}: column {column!r} is not one of a table ({in_a_line(error)}).") from error


def _is_column(values: Any) -> bool:
    return not isinstance(values, str | bytes) and (isinstance(values, Iterable) or hasattr(values, "__array__"))


def _is_plain(kind: Any, letters: str) -> bool:
    return isinstance(kind, np.dtype) and kind.kind in letters and kind.itemsize <= 8


def _plain(value: Any) -> Any:
    """Return a value as its text, or a list of texts; None for what stands for a missing value."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if type(value).__name__ in ("NAType", "NaTType") or value is np.ma.masked:
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset | pl.Series):
        return [_plain(one) for one in value]
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.ndarray) or (getattr(value, "ndim", 0) and hasattr(value, "tolist")):
        return [_plain(one) for one in value] if value.ndim else _plain(value[()])
    if hasattr(value, "dtype") and not isinstance(value, np.timedelta64 | np.str_ | np.bytes_):
        is_float = str(value.dtype).startswith(("float", "bfloat", "torch.float", "torch.bfloat"))
        value = float(as_float64(value).reshape(())) if is_float else value.item()
        if not isinstance(value, float):
            return _plain(value) if not hasattr(value, "dtype") else str(value)
    if isinstance(value, float | Decimal):
        return None if math.isnan(value) else repr(value) if isinstance(value, float) else str(value)
    return value if isinstance(value, bytes) else str(value)  # bytes of an image, which nothing reads

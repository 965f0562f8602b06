"""Step 1, where a table may come from: a file, memory, or a data set of the Hugging Face hub.

In memory, it is a data frame of polars, pandas, pyarrow or datasets, a mapping of columns, or a list of rows. Values
mean what they mean in a file: a float32 .9 is .9, True is true, and NaN, NaT and pd.NA are missing values.

An address of the hub is hf://owner/name[@revision][/config/split or /file]. After the name stands either a file of the
repository, or where its tables lie: `<config>/<split>` stands for the files <config>/<split>-*.parquet,
<config>/<split>/*.parquet, and the same with .csv and .jsonl. Without anything, the repository has to have exactly one
table. The branch `refs/convert/parquet`, which the hub makes of most data sets, has <config>/<split>/0000.parquet.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dualread import plugins
from dualread.data.foreign_tables.content import LARGEST_COLUMNS
from dualread.data.foreign_tables.read import (
    SUFFIXES,
    column_of,
    features_in,
    read_columns,
    suffix_of,
    with_class_names,
)
from dualread.errors import ConfigError, DataError, in_a_line
from dualread.evaluation.decimals import as_float64
from dualread.own.given import UserTable, some

_LISTED = 10  # columns that an error lists


def read_given(path: Path, used: Collection[str] | None = None) -> UserTable:
    """Read a table; how is a note, unless it is as usual.

    Args:
        path: The file.
        used: Names of columns whose values are needed; None for all.

    Raises:
        DataError: The file cannot be read, has another format, has two columns of one name, or has no rows.
    """
    if path.is_dir():
        raise DataError(
            f"{path}: is a folder, expected a table. A study writes those of each run to"
            " results/<study>/answers/<backbone>/<actor>/<seed>."
        )
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
) -> UserTable:
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
    return UserTable(path=path, frame=frame, rows=rows.filter(filled), notes=notes)


_EXPECTED = "expected a data frame (polars, pandas, pyarrow, datasets), a mapping of columns, a list of rows, or a path"


def given_in_memory(table: Any, name: str) -> UserTable:
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


_ADDRESS = re.compile(
    r"hf://(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>refs/(?:convert|pr)/[\w.-]+|[\w.-]+))?(?:/(?P<place>.+))?"
)


def is_address(table: Any) -> bool:
    """Whether `table` is the address of a data set of the hub."""
    return isinstance(table, str) and table.startswith("hf://")


def read_address(address: str, used: Collection[str] | None = None) -> UserTable:
    """Download the tables that `address` names, and read them as one; `used` is as in `read_given`.

    Raises:
        ConfigError: It is no such address, or it names no table or several.
        DataError: The hub cannot be reached, huggingface_hub is not installed, a file is no table, or it has other
            columns than the first.
    """
    read = [read_given(path, used) for path in _download(address, _is_table)]
    try:
        return given_of(pl.concat(one.frame for one in read), address)
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{address}: its {len(read)} files have different columns ({error}). Name one file.") from error


def local_file(address: str) -> Path:
    """Download the one file that `address` names, such as a log, and return its place on this machine.

    Raises:
        ConfigError: It is no such address, or it names no file or several.
        DataError: The hub cannot be reached, or huggingface_hub is not installed.
    """
    paths = _download(address, lambda file: True)
    if len(paths) != 1:
        raise ConfigError(f"{address}: {len(paths)} files; a log is one file. Name it: hf://owner/name/FILE.")
    return paths[0]


def _download(address: str, wanted: Any) -> list[Path]:
    if (match := _ADDRESS.fullmatch(address)) is None:
        raise ConfigError(f"{address}: expected hf://owner/name, hf://owner/name@revision/config/split or .../FILE.")
    try:
        from huggingface_hub import HfApi, hf_hub_download
    except ModuleNotFoundError as error:  # of its extras, `logs` is the small one
        raise DataError(f"{address}: huggingface-hub is not installed. Run: pip install 'dualread[logs]'.") from error
    name, revision, place = match["name"], match["revision"], match["place"]
    try:
        files = HfApi().list_repo_files(name, repo_type="dataset", revision=revision)
        chosen = _chosen(address, place, [file for file in files if wanted(file)])
        return [Path(hf_hub_download(name, file, repo_type="dataset", revision=revision)) for file in chosen]
    except ConfigError:
        raise
    except Exception as error:  # the hub raises errors of several packages
        raise DataError(
            f"{address}: cannot be downloaded from the hub ({in_a_line(error)}). Check the name, the revision and the"
            " connection; a data set with restricted access needs `hf auth login`."
        ) from error


def _is_table(file: str) -> bool:
    return suffix_of(Path(file)) in SUFFIXES


def _chosen(address: str, place: str | None, files: Sequence[str]) -> list[str]:
    """Return the file of this name, or those of this config and split, or the only one."""
    if place is not None and place in files:
        return [place]
    if place is None:
        found = list(files)
    else:
        start, _, split = place.rpartition("/")
        of_split = re.compile(rf"(?:{re.escape(start)}/)?{re.escape(split)}(?:[-.][^/]*|/[^/]+)")
        found = sorted(file for file in files if of_split.fullmatch(file))
        if found:
            return found
    if len(found) == 1:
        return found
    listed = some(found or files) or "none"
    what = f"nothing is named {place!r}" if place is not None else f"{len(found)} files could be meant"
    raise ConfigError(f"{address}: {what}. Add /FILE or /CONFIG/SPLIT. Files: {listed}.")

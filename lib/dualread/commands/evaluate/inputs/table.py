"""A plain table: a .csv, .jsonl or .parquet file, or columns in memory."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from dualread import plugins
from dualread.commands.evaluate.given import Given
from dualread.errors import DataError


def _read_csv(content: bytes) -> pl.DataFrame:
    """Read a .csv separated by what occurs most often in its first line: commas, semicolons, or tabs."""
    text = content.decode("utf-8-sig")
    separator = max(",;\t", key=text.partition("\n")[0].count)
    return pl.read_csv(text.encode(), infer_schema=False, separator=separator)


def _read_json_lines(content: str) -> pl.DataFrame:
    """Return one row per line and one column per key, null if an object lacks the key or a line is blank.

    A column holds text or lists of texts: a number is kept as it is written, and `true` becomes "true". A column with
    other values, or with lists in some rows and single values in others, holds Python objects, because polars would
    turn a list among texts into one text.

    Raises:
        ValueError: A line is not a JSON object; the message gives the line's number.
    """
    objects = [_object(number, line) for number, line in enumerate(content.split("\n"), start=1)]
    names = dict.fromkeys(name for found in objects for name in found)
    return pl.DataFrame([_column(name, [found.get(name) for found in objects]) for name in names])


def _object(number: int, line: str) -> dict[str, Any]:
    if not line.strip():
        return {}
    try:
        found = _texts(json.loads(line, parse_float=str, parse_int=str, parse_constant=_refuse))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"line {number}: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"line {number}: {line[:40]!r} is not an object")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON value")


def _texts(value: Any) -> Any:
    """Return `value` with its Booleans replaced by text; numbers are text already."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return [_texts(item) for item in value]
    if isinstance(value, dict):
        return {key: _texts(item) for key, item in value.items()}
    return value


def _column(name: str, values: Sequence[Any]) -> pl.Series:
    if all(value is None or isinstance(value, str) for value in values):
        return pl.Series(name, values, dtype=pl.String)
    if all(value is None or _is_list_of_texts(value) for value in values):
        return pl.Series(name, values, dtype=pl.List(pl.String))
    return pl.Series(name, values, dtype=pl.Object)


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(item is None or isinstance(item, str) for item in value)


FORMATS: dict[str, Callable[[bytes], pl.DataFrame]] = {
    ".csv": _read_csv,
    ".jsonl": lambda content: _read_json_lines(content.decode("utf-8-sig")),
    ".parquet": lambda content: pl.read_parquet(content),
}


def read_given(path: Path) -> Given:
    """Read a .csv, .jsonl or .parquet file.

    Raises:
        DataError: The file cannot be read, has another format, has two columns of one name, or has no rows.
    """
    if path.suffix.lower() not in FORMATS:
        read_by = [name for name in plugins.known("logs") if path.suffix in plugins.declared("logs", name, "SUFFIXES")]
        options = " or ".join(f"--from {name.replace('_', '-')}" for name in read_by)
        raise DataError(
            f"{path}: unknown format {path.suffix!r}. Known: {', '.join(FORMATS)}."
            + (f" If it is a log of another harness, add {options}." if read_by else "")
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}). Expected a .csv, .jsonl or .parquet file."
        ) from error
    if not content.strip():
        raise DataError(
            f"{path}: is empty; expected a table with a row for each answer or pair (dualread evaluate --help)."
        )
    try:
        frame = FORMATS[path.suffix.lower()](content)
    except (pl.exceptions.PolarsError, ValueError) as error:
        first = str(error).splitlines()[0]
        if path.suffix.lower() == ".parquet":
            raise DataError(f"{path}: is not a .parquet table ({first}). Write it again, or rename it.") from error
        if content[:4] == b"PAR1":
            raise DataError(f"{path}: is a parquet file. Rename it to {path.stem}.parquet.") from error
        if isinstance(error, UnicodeDecodeError):
            raise DataError(f"{path}: is not in UTF-8 ({first}). Save it as UTF-8 (in Excel: CSV UTF-8).") from error
        raise DataError(
            f"{path}: is not a {path.suffix} table ({first}). In .csv, separate columns by commas and put text"
            " that contains a comma in double quotes; in .jsonl, put one object on each line, with null for a missing"
            " number."
        ) from error
    return given_of(frame, path)


def given_of(frame: pl.DataFrame, path: Path | str) -> Given:
    """Return the rows of a table that `path` names in messages; rows without any value are left out.

    Raises:
        DataError: Two columns have the same name, or there are no rows.
    """
    names = [name.strip() for name in frame.columns]
    twice = {name for name in names if names.count(name) > 1}
    # polars renames the second of two .csv columns with the same name.
    twice |= {found[1] for name in names if (found := re.fullmatch(r"(.+)_duplicated_\d+", name)) and found[1] in names}
    if twice:
        raise DataError(f"{path}: column {min(twice)!r} occurs more than once. Rename or delete the others.")
    filled = pl.Series([], dtype=pl.Boolean)  # blank lines at the end are common
    if names:
        filled = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
    if not filled.any():
        raise DataError(
            f"{path}: has no rows. Expected one for each answer or pair; found columns: {', '.join(names) or 'none'}."
        )
    rows = pl.int_range(1, len(filled) + 1, eager=True).filter(filled)
    return Given(path=path, frame=frame.rename(dict(zip(frame.columns, names, strict=True))).filter(filled), rows=rows)


def given_in_memory(table: Any, name: str) -> Given:
    """Return the rows of a data frame of polars or pandas, or of a mapping of columns.

    Raises:
        DataError: It is none of these, its columns differ in length, or it has no rows.
    """
    if isinstance(table, pl.DataFrame):
        return given_of(table, name)
    if isinstance(table, Mapping):
        return given_of(_frame(table.items(), name), name)
    if hasattr(table, "columns"):  # pandas, or what has its form
        return given_of(_frame(((str(column), table[column].tolist()) for column in table.columns), name), name)
    raise DataError(
        f"{name}: {type(table).__name__}; expected a polars or pandas data frame, a mapping of columns, or a path."
    )


def _frame(items: Any, name: str) -> pl.DataFrame:
    try:
        return pl.DataFrame([pl.Series(str(column), list(_values(values)), strict=False) for column, values in items])
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{name}: is not a table ({error}). Expected one list of values per column.") from error


def _values(values: Any) -> Iterator[Any]:
    """Yield plain values, and None where pandas has NaN for a missing text or number."""
    for value in values:
        plain = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
        yield None if isinstance(plain, float) and plain != plain else plain

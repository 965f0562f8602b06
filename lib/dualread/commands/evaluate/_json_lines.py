"""Read a .jsonl file as columns of text, with every value as it is written in the file."""

import json
from collections.abc import Sequence
from typing import Any

import polars as pl


def read_json_lines(content: str) -> pl.DataFrame:
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

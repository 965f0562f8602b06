"""Read JSON: one object per line, a list of objects, or a mapping of columns; what is there decides, not the name.

A mapping of columns is {"name": [value, ...]} or, as pandas writes it, {"name": {"0": value, ...}}; or it has the names
of columns in `columns` and the rows in `data`.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualread.data.foreign_tables.content import LARGEST_COLUMNS, LARGEST_ROWS, Content, look_through, plain_names
from dualread.errors import DataError

_SPACE = re.compile(r"\s*")
_LISTED = 10  # problems that one error lists
_START = 1_000_000  # characters that tell the form; a first line of objects is shorter


@dataclass(frozen=True)
class BrokenLine:
    """A line of JSON lines that holds no object, and why."""

    why: str


_BLANK = BrokenLine("the line is empty. Write one object per line.")


@dataclass(frozen=True, kw_only=True)
class Objects:
    """A file of JSON.

    Attributes:
        content: The file.
        form: In words, what it is: "JSON lines", "a JSON list" or "JSON columns".
        unit: What the numbers of its rows count: "line" or "row".
    """

    content: Content
    form: str
    unit: str

    def rows(self, numbers: Callable[[str], Any] | None = None, *, every: bool = False) -> Iterator[tuple[int, Any]]:
        """Yield (number from 1, object); blank lines are counted.

        Args:
            numbers: What reads the text of a number, NaN and Infinity included; by default, Python's int and float.
            every: Whether a `BrokenLine` stands for a line that holds no object, also for a blank one before others.

        Raises:
            DataError: Something is no object, has a key twice, or is half of a surrogate pair; up to ten are listed.
        """
        if self.form == "JSON lines":
            found = _every_line(self.content, numbers) if every else _of_lines(self.content, numbers)
        else:
            path, text = self.content.path, self.content.text()
            of_list = self.form == "a JSON list"
            found = enumerate(
                _of_list(path, text, numbers) if of_list else _of_columns(path, _read(path, text, numbers)), 1
            )
        names: dict[str, str] = {}
        is_plain = True
        for number, one in found:
            if isinstance(one, BrokenLine):
                yield number, one
                continue
            if not isinstance(one, dict):
                raise DataError(f"{self.content.path}: {self.unit} {number}: is {_kind(one)}, expected an object.")
            if number > LARGEST_ROWS:
                raise DataError(f"{self.content.path}: has more than {LARGEST_ROWS:,} rows. Split it.")
            if one.keys() - names.keys():
                names |= {name: name.strip() for name in one}
                is_plain = all(name == plain for name, plain in names.items())
            if len(names) > LARGEST_COLUMNS:
                raise DataError(
                    f"{self.content.path}: has more than {LARGEST_COLUMNS:,} columns up to {self.unit} {number}."
                    " Expected one object per row, with the names of columns as keys."
                )
            yield number, one if is_plain else dict(zip(plain_names(self.content.path, one), one.values(), strict=True))


def open_objects(path: Path) -> Objects:
    """Return how a file of JSON is to be read.

    Raises:
        DataError: It is empty, or no text.
    """
    content = look_through(path)
    if content.is_empty:
        raise DataError(f"{path}: has no rows, it is empty. Expected one object per line, or a list of objects.")
    start = content.text(_START).lstrip()
    first, end, rest = start.partition("\n")
    named_lines = path.name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson"))
    if start.startswith("["):
        return Objects(content=content, form="a JSON list", unit="row")
    if start.startswith("{") and not named_lines and not (end and rest.strip() and _is_object(first)):
        return Objects(content=content, form="JSON columns", unit="row")
    return Objects(content=content, form="JSON lines", unit="line")


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _every_line(content: Content, numbers: Callable[[str], Any] | None) -> Iterator[tuple[int, Any]]:
    """Yield the object of each line, or why it holds none; blank lines at the end are no lines."""
    blank: list[int] = []
    for number, line in enumerate(content.lines(), start=1):
        if not line.strip():
            blank.append(number)
            continue
        yield from ((one, _BLANK) for one in blank)
        blank = []
        try:
            found = parsed(line, numbers)
        except (ValueError, RecursionError) as error:
            yield number, BrokenLine(f"not JSON ({_reason(error)}). Write one object per line.")
        else:
            yield number, found if isinstance(found, dict) else BrokenLine(f"is {_kind(found)}, expected an object.")


def _of_lines(content: Content, numbers: Callable[[str], Any] | None) -> Iterator[tuple[int, Any]]:
    problems, n = [], 0
    for number, found in _every_line(content, numbers):
        if isinstance(found, dict):
            if not n:
                yield number, found
        elif found is not _BLANK:
            n += 1
            if n <= _LISTED:
                problems.append(f"{content.path}: line {number}: {found.why}")
    if n:
        raise DataError("\n".join([*problems, *([f"... and {n - _LISTED} more"] if n > _LISTED else [])]))


def _of_list(path: Path, text: str, numbers: Callable[[str], Any] | None) -> Iterator[Any]:
    """Yield the items of a list one by one, so that they are not all in memory."""
    decode = _decoder(numbers).raw_decode
    place, n = _after_space(text, text.index("[") + 1), 0
    while not text.startswith("]", place):
        n += 1
        try:
            if n > 1:
                if not text.startswith(",", place):
                    raise ValueError(f"Expecting ',' at character {place}")
                place = _after_space(text, place + 1)
            start = place
            found, place = decode(text, place)
            _refuse_half_pairs(text[start:place], found)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: row {n}: not JSON ({_reason(error)}). Write it again.") from error
        yield found
        place = _after_space(text, place)
    if text[place + 1 :].strip():
        raise DataError(f"{path}: not JSON (more text follows the list). Write one list, or one object per line.")


def _after_space(text: str, place: int) -> int:
    return _SPACE.match(text, place).end()  # type: ignore[union-attr]  (it matches nothing, too)


def _of_columns(path: Path, content: Any) -> Iterator[dict[str, Any]]:
    """Yield one object per row of a mapping of columns, or of the names of columns and `data`, a list of rows."""
    if isinstance(content, dict) and isinstance(content.get("data"), list):
        if "schema" in content:  # pandas, orient="table"
            yield from content["data"]
            return
        if isinstance(content.get("columns"), list):  # pandas, orient="split", and tables of Weights & Biases
            yield from _of_split(path, content["columns"], content["data"])
            return
    columns = list(content.values()) if isinstance(content, dict) else []
    if not columns or not (
        all(isinstance(column, list) for column in columns) or all(isinstance(column, dict) for column in columns)
    ):
        keys = ", ".join(list(content)[:_LISTED]) if isinstance(content, dict) else _kind(content)
        raise DataError(
            f"{path}: is no table: {keys or 'nothing'} at its top. Expected a list of objects, one object per line, or"
            " a mapping from names of columns to lists of values."
        )
    if isinstance(columns[0], dict):
        keys = list(columns[0])
        if any(list(column) != keys for column in columns):
            raise DataError(f"{path}: its columns have different rows. Expected the same keys in each.")
        columns = [list(column.values()) for column in columns]
    if len({len(column) for column in columns}) > 1:
        lengths = ", ".join(f"{name}: {len(column)}" for name, column in list(content.items())[:_LISTED])
        raise DataError(f"{path}: its columns have different lengths ({lengths}). Expected one value per row.")
    for values in zip(*columns, strict=True):
        yield dict(zip(content, values, strict=True))


def _of_split(path: Path, names: list[Any], rows: list[Any]) -> Iterator[dict[str, Any]]:
    if not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        raise DataError(f"{path}: its rows in 'data' do not have as many values as 'columns' has names.")
    if twice := [name for name, n in Counter(map(str, names)).items() if n > 1]:
        raise DataError(f"{path}: column {twice[0]!r} occurs more than once. Rename or delete the others.")
    yield from (dict(zip(map(str, names), row, strict=True)) for row in rows)


def _read(path: Path, text: str, numbers: Callable[[str], Any] | None) -> Any:
    try:
        return parsed(text, numbers)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON ({_reason(error)}). Write it again.") from error


def parsed(text: str, numbers: Callable[[str], Any] | None = None) -> Any:
    """Return the content of a JSON text.

    Args:
        text: The text.
        numbers: As in `Objects.rows`.

    Raises:
        ValueError: The text is not JSON, a key occurs twice in one object, or an escape sequence is half of a surrogate
            pair, so that its text could not be written again.
        RecursionError: It is nested too deeply.
    """
    content = _decoder(numbers).decode(text)
    _refuse_half_pairs(text, content)
    return content


def _decoder(numbers: Callable[[str], Any] | None) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_unique_keys, parse_int=numbers, parse_float=numbers, parse_constant=numbers
    )


def _refuse_half_pairs(text: str, content: Any) -> None:
    if "\\ud" in text or "\\uD" in text:
        json.dumps(content, ensure_ascii=False).encode()


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build one JSON object. The json module by itself would silently keep the last of two equal keys.

    Raises:
        ValueError: A key occurs twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice!r} occurs twice in one object")
    return found


def _reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error).split("\n")[0][:200]


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else "a single value"

"""Open the files of logs, within limits: text, lines or a list of JSON, and archives."""

import json
from pathlib import Path
from typing import Any

from dualread.errors import DataError

_LARGEST = 2_000_000_000  # bytes of a log
_ALWAYS_UNPACKED = 64_000_000
_LARGEST_RATIO = 200  # the logs in our tests: 3 to 4
_ALWAYS_HELD = 5_000_000  # values of JSON
_VALUES_PER_BYTE = 8  # of an archive; log-probabilities of 20 tokens each, which are the most, take .4


def read_objects(path: Path) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the objects of a .jsonl log, or of one JSON list; and {why: 1} if the last line is cut off.

    A number with a decimal point is a float; NaN and Infinity, which Python's harnesses write, are floats.

    Raises:
        DataError: The file is not text or too large, has no object, or another line than the last is no object.
    """
    text = read_text(path, "one JSON object per line")
    if text.lstrip().startswith("["):
        return _objects_of_list(path, text), {}
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    found, cut = [], {}
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines) > 1 and line.startswith("{"):
                cut = {"the last line is cut off": 1}
                break
            if number == 1 and _is_object(text):
                raise DataError(
                    f"{path}: is one JSON object over several lines, such as a file of results. Expected a log of"
                    " samples: one object per line, or a list of objects."
                ) from error
            raise DataError(
                f"{path}: line {number}: not JSON ({reason(error)}). Expected one object per line."
            ) from error
        if not isinstance(record, dict):
            raise DataError(f"{path}: line {number}: is a {type(record).__name__}, expected an object.")
        found.append(record)
    if not found:
        raise DataError(f"{path}: has no rows. Expected one JSON object per line.")
    return found, cut


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _objects_of_list(path: Path, text: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: begins as one JSON list, and is none ({reason(error)}). Expected one object per line, or a"
            " complete list of objects. Is the file cut off? Copy it again."
        ) from error
    if wrong := [place for place, record in enumerate(found, start=1) if not isinstance(record, dict)]:
        kind = type(found[wrong[0] - 1]).__name__
        raise DataError(f"{path}: item {wrong[0]} of its JSON list is a {kind}, expected an object.")
    if not found:
        raise DataError(f"{path}: has no rows, it is an empty JSON list. Expected one JSON object per question.")
    return found


def read_text(path: Path, expected: str) -> str:
    """Return the content of a log that is text.

    Raises:
        DataError: It is too large, or is not text in UTF-8; `expected` completes the sentence.
    """
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not text in UTF-8 ({error}). Expected {expected}.") from error


def read_bytes(path: Path) -> bytes:
    """Return the content of a log.

    Raises:
        DataError: It is larger than 2 GB.
    """
    if (size := path.stat().st_size) > _LARGEST:
        raise DataError(f"{path}: has {size:,} bytes, expected at most {_LARGEST:,}. Split the log.")
    return path.read_bytes()


class Left:
    """How much an archive may still unpack to: 200 times its size, within 64 MB and 2 GB, and values by its size.

    A value that is packed to nothing may take a hundred bytes of memory.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._size = path, path.stat().st_size
        self._bytes = min(_LARGEST, max(_ALWAYS_UNPACKED, _LARGEST_RATIO * self._size))
        self._values = max(_ALWAYS_HELD, _VALUES_PER_BYTE * self._size)

    def unpack(self, n: int) -> None:
        """Unpack n bytes.

        Raises:
            DataError: The archive has no more left.
        """
        self._bytes -= n
        if self._bytes < 0:
            self._refuse("bytes")

    def hold(self, n: int) -> None:
        """Hold n values of JSON.

        Raises:
            DataError: The archive has no more left.
        """
        self._values -= n
        if self._values < 0:
            self._refuse("values")

    def _refuse(self, what: str) -> None:
        raise DataError(
            f"{self._path}: unpacks to more {what} than a log or table of {self._size:,} packed bytes can hold. If you"
            " trust it, convert it: a .eval to .json with `inspect log convert`, an .xlsx to .tsv."
        )


def reason(error: Exception) -> str:
    """Return in a few words why a text is not JSON."""
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error).split("\n")[0][:200]

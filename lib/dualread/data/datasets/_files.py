"""Read and check official files, which may be damaged or have been edited; shared by the loaders."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from dualread.data.tables.files import parsed
from dualread.errors import ConfigError, DataError, did_you_mean
from dualread.schema.base import Section, Wire

T = TypeVar("T", bound=Section)


def checked_request(loader: str, split: str, splits: Iterable[str], settings: Wire, declared: type[T]) -> T:
    """Return `settings` as the loader named `loader` declares them, after a check of the split.

    Raises:
        ConfigError: `split` is not one of `splits`, or a setting is unknown, missing, or not allowed.
    """
    if split not in (names := list(splits)):
        raise ConfigError(f"{loader}: no split named {split!r}. Known: {', '.join(names)}.{did_you_mean(split, names)}")
    return declared.from_spec(settings, f"{loader}: settings")


def read_json(file: Path, kind: type) -> Any:
    """Return the content of a JSON file.

    Raises:
        DataError: The file is not JSON, an object in it has the same key twice, or its content is no `kind` (list or
            dict).
    """
    try:
        content = parsed(file.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: not JSON ({error}). Restore it from the official archive.") from error
    if not isinstance(content, kind):
        raise DataError(f"{file}: holds a {type(content).__name__}, expected a {kind.__name__} of rows.")
    return content


def lines_of(file: Path) -> dict[int, str]:
    """Return the lines of a text file by their numbers, from 0, without line ends (LF or CRLF) and blank lines.

    Raises:
        DataError: The file is not UTF-8 text.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")  # turns CRLF into one line feed
    except ValueError as error:
        raise DataError(f"{file}: not UTF-8 text ({error}). Restore it from the official archive.") from error
    return {i: line for i, line in enumerate(text.split("\n")) if line.strip()}


def not_text(record: Mapping[str, Any], keys: Iterable[str]) -> Iterator[str]:
    """Yield a problem for each of `keys` whose value in `record` is missing or not text."""
    for key in keys:
        if not isinstance(record.get(key), str):
            yield f"{key} is {record.get(key)!r}, expected text. Correct the row."


def is_texts(value: Any) -> bool:
    """Return whether `value` is a list of texts."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def lower(text: str | None) -> str | None:
    """Return `text` in lower case without white space at the ends; None for None and for blank text."""
    return (text or "").strip().lower() or None


def leaves_folder(name: str) -> bool:
    """Return whether a path from an official file is empty, absolute, or contains `..`."""
    path = PurePosixPath(name.replace("\\", "/"))
    return not name.strip() or path.is_absolute() or ".." in path.parts

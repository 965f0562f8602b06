"""Read and check official files, which may be damaged or have been edited; shared by the loaders."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from dualread.data.foreign_tables.objects import parsed
from dualread.declared.base import Wire
from dualread.errors import ConfigError, DataError, did_you_mean


def check_request(loader: str, split: str, splits: Iterable[str], settings: Wire, known: Iterable[str]) -> None:
    """Refuse a split or a setting that the loader named `loader` does not have.

    Raises:
        ConfigError: `split` is not one of `splits`, or `settings` has a name that is not in `known`.
    """
    if split not in (names := list(splits)):
        raise ConfigError(f"{loader}: no split named {split!r}. Known: {', '.join(names)}.{did_you_mean(split, names)}")
    if unknown := sorted(set(settings) - set(known)):
        listed = ", ".join(known) or "none"
        meant = did_you_mean(unknown[0], known)
        raise ConfigError(f"{loader}: settings.{unknown[0]}: no such setting. Known: {listed}.{meant}")


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

"""Read and check official files, which may be damaged or have been edited; shared by the loaders."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from dualread.data.datasets.base import refuse
from dualread.errors import ConfigError, DataError, did_you_mean
from dualread.specs.parts import Settings


def check_request(loader: str, split: str, splits: Iterable[str], settings: Settings, known: Iterable[str]) -> None:
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
        content = _json(file.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: not JSON ({error}). Restore it from the official archive.") from error
    if not isinstance(content, kind):
        raise DataError(f"{file}: holds a {type(content).__name__}, expected a {kind.__name__} of rows.")
    return content


def read_json_lines(file: Path) -> list[tuple[int, dict[str, Any]]]:
    """Return the objects of a JSON Lines file, each with the 0-based number of its line; blank lines are skipped.

    Raises:
        DataError: A line is not a JSON object, or has the same key twice; up to ten lines are listed, counted from 1.
    """
    records, problems = [], []
    with file.open("rb") as lines:
        for i, line in enumerate(lines):
            try:
                record = _json(line.decode()) if line.strip() else None
            except (ValueError, RecursionError) as error:
                problems.append(f"{file}: line {i + 1}: not JSON ({error}). Write one object per line.")
                continue
            if isinstance(record, dict):
                records.append((i, record))
            elif line.strip():
                problems.append(f"{file}: line {i + 1}: is a {type(record).__name__}, expected an object.")
    refuse(problems)
    return records


def _json(text: str) -> Any:
    """Return the content of a JSON text.

    Raises:
        ValueError: The text is not JSON, a key occurs twice in one object, or an escape sequence is half of a surrogate
            pair, so that its text could not be written again.
    """
    content = json.loads(text, object_pairs_hook=_unique_keys)
    if "\\ud" in text.lower():
        json.dumps(content, ensure_ascii=False).encode()
    return content


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

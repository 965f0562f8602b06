"""What loaders share in reading official files, which nobody vouches for."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from dualread.data.datasets.base import refuse
from dualread.errors import ConfigError, DataError, did_you_mean


def check_request(
    loader: str, split: str, splits: Iterable[str], settings: Mapping[str, Any], known: Iterable[str]
) -> None:
    """Refuse a split or a setting that `loader` does not have.

    Raises:
        ConfigError: `split` is not among `splits`, or a name of `settings` not among `known`.
    """
    if split not in (names := list(splits)):
        raise ConfigError(f"{loader}: no split named {split!r}. Known: {', '.join(names)}.{did_you_mean(split, names)}")
    if unknown := sorted(set(settings) - set(known)):
        listed = ", ".join(known) or "none"
        meant = did_you_mean(unknown[0], known)
        raise ConfigError(f"{loader}: settings.{unknown[0]}: no such setting. Known: {listed}.{meant}")


def read_json(file: Path, kind: type) -> Any:
    """Return what the JSON file holds.

    Raises:
        DataError: The file is not JSON, an object of it has a key twice, or it does not hold a `kind` (list, dict).
    """
    try:
        content = _json(file.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: not JSON ({error}). Restore it from the official archive.") from error
    if not isinstance(content, kind):
        raise DataError(f"{file}: holds a {type(content).__name__}, expected a {kind.__name__} of rows.")
    return content


def read_json_lines(file: Path) -> list[tuple[int, dict[str, Any]]]:
    """Return the 0-based number of each line of the file that is not blank, and the object that it holds.

    Raises:
        DataError: Lines are not JSON, hold no object, or have a key twice; up to ten are named, counted from 1.
    """
    records, problems = [], []
    with file.open("rb") as lines:
        for i, line in enumerate(lines):
            try:
                record = _json(line.decode()) if line.strip() else None
            except (ValueError, RecursionError) as error:
                problems.append(f"{file}: line {i + 1}: not JSON ({error}). Write one object a line.")
                continue
            if isinstance(record, dict):
                records.append((i, record))
            elif line.strip():
                problems.append(f"{file}: line {i + 1}: is a {type(record).__name__}, expected an object.")
    refuse(problems)
    return records


def _json(text: str) -> Any:
    """Read JSON whose every text can be written again.

    Raises:
        ValueError: It is not JSON, a key occurs twice, or an escape is half of a surrogate pair.
    """
    content = json.loads(text, object_pairs_hook=_unique_keys)
    if "\\ud" in text.lower():
        json.dumps(content, ensure_ascii=False).encode()
    return content


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of JSON; a key that occurs twice is an error, where json alone would keep the last in silence.

    Raises:
        ValueError: A key occurs twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice!r} occurs twice in one object")
    return found


def not_text(record: Mapping[str, Any], keys: Iterable[str]) -> Iterator[str]:
    """Yield a problem for each of `keys` whose value in `record` is missing or no text."""
    for key in keys:
        if not isinstance(record.get(key), str):
            yield f"{key} is {record.get(key)!r}, expected text. Correct the row."


def is_texts(value: Any) -> bool:
    """Tell whether `value` is a list of texts."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def lower(text: str | None) -> str | None:
    """Return `text` trimmed and in lower case; None where there is none, or a blank one."""
    return (text or "").strip().lower() or None


def leaves_folder(name: str) -> bool:
    """Tell whether a path that an official file gives is empty or absolute, or climbs with `..`."""
    path = PurePosixPath(name.replace("\\", "/"))
    return not name.strip() or path.is_absolute() or ".." in path.parts

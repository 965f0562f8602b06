"""Which entries are needed: those of the artifacts below a results folder, and all that these were made from."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from dualread.errors import ArtifactError
from dualread.store.digest import MANIFEST_NAME
from dualread.store.files import read_json
from dualread.store.store import Store

_STATED = {"key": str, "digest": str, "input_keys": dict}


def artifacts_below(
    folder: Path, store: Store, *, unreadable: Callable[[OSError], None] | None = None
) -> Iterator[Path]:
    """Yield the directory of every artifact below `folder`, sorted, without those inside the store.

    Args:
        folder: The folder to search.
        store: The store, which may lie in `folder`.
        unreadable: Called with the error if a folder cannot be read; without it, such a folder counts as empty.
    """
    root = store.root.resolve()
    for parent, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if name != root.name or Path(parent, name).resolve() != root)
        if MANIFEST_NAME in files:
            yield Path(parent)


def keys_below(folder: Path, store: Store) -> set[str]:
    """Return the keys of all artifacts below `folder`.

    Raises:
        ArtifactError: A MANIFEST.json is damaged, or a folder cannot be read.
    """
    directories = artifacts_below(folder, store, unreadable=_refuse)
    return {stated(directory / MANIFEST_NAME)["key"] for directory in directories}


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise ArtifactError(
            f"{error.filename}: cannot be read ({error.strerror}). Ask its owner for access."
        ) from error


def stated(path: Path) -> dict[str, Any]:
    """Return the contents of a MANIFEST.json without the full check of `read_manifest`, which is far slower.

    Raises:
        ArtifactError: The file is missing, or states no key, digest or input keys.
    """
    try:
        document = read_json(path)
        if all(isinstance(document[name], kind) for name, kind in _STATED.items()):
            return document
        raise TypeError("not in the format that the store writes")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArtifactError(
            f"{path}: cannot be read as a manifest ({error!r}). `dualread verify` says more."
        ) from error


def reachable(keys: Iterable[str], store: Store) -> list[str]:
    """Return `keys` and the keys of all entries that they were made from, directly or indirectly.

    The result includes keys that the store lacks; what those were made from is not known.

    Raises:
        ArtifactError: A MANIFEST.json is damaged, so it is not known what that entry was made from.
    """
    todo = sorted(set(keys))
    found = dict.fromkeys(todo)
    while todo:
        path = store.entry(todo.pop()) / MANIFEST_NAME
        new = sorted(set(stated(path)["input_keys"].values()) - found.keys()) if path.exists() else []
        found.update(dict.fromkeys(new))
        todo.extend(new)
    return list(found)

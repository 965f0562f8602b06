"""Which entries artifacts rest on: those below a results folder, and all that they were made from."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from dualread.errors import ArtifactError
from dualread.store.files import read_json
from dualread.store.manifest import MANIFEST_NAME
from dualread.store.store import Store

_STATED = {"key": str, "digest": str, "input_keys": dict}


def artifacts_below(
    folder: Path, store: Store, *, unreadable: Callable[[OSError], None] | None = None
) -> Iterator[Path]:
    """Yield the directory of every artifact in `folder`, sorted; the store may lie there and is left out.

    Args:
        folder: Where to look.
        store: Left out.
        unreadable: Called where a folder cannot be read; without it, such a folder is as good as empty.
    """
    root = store.root.resolve()
    for parent, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if name != root.name or Path(parent, name).resolve() != root)
        if MANIFEST_NAME in files:
            yield Path(parent)


def keys_below(folder: Path, store: Store) -> set[str]:
    """Return the key of every artifact in `folder`.

    Raises:
        ArtifactError: A MANIFEST.json there is damaged, or a folder cannot be read.
    """
    directories = artifacts_below(folder, store, unreadable=_refuse)
    return {stated(directory / MANIFEST_NAME)["key"] for directory in directories}


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise ArtifactError(f"{error.filename}: cannot be read ({error.strerror}). Ask its owner.") from error


def stated(path: Path) -> dict[str, Any]:
    """Return what a MANIFEST.json states, without the check of `read_manifest`: that takes longer than all else.

    Raises:
        ArtifactError: It is missing, or states no key, digest or inputs.
    """
    try:
        document = read_json(path)
        if all(isinstance(document[name], kind) for name, kind in _STATED.items()):
            return document
        raise TypeError("not of the form that the store writes")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArtifactError(
            f"{path}: cannot be read as a manifest ({error!r}). `dualread verify` says more."
        ) from error


def reachable(keys: Iterable[str], store: Store) -> list[str]:
    """Return the keys of all entries that `keys` rest on, their own included.

    One that is not in the store is among them; what it rests on is not known.

    Raises:
        ArtifactError: The MANIFEST.json of one is damaged, so that nobody knows what it was made from.
    """
    todo = sorted(set(keys))
    found = dict.fromkeys(todo)
    while todo:
        path = store.entry(todo.pop()) / MANIFEST_NAME
        new = sorted(set(stated(path)["input_keys"].values()) - found.keys()) if path.exists() else []
        found.update(dict.fromkeys(new))
        todo.extend(new)
    return list(found)

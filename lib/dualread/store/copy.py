"""Copy entries from one store to another; each is verified byte by byte and published with one rename.

Several machines may copy into one store and run from it at the same time: an entry appears as a whole or not at all.
"""

import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from dualread.errors import ArtifactError
from dualread.store.disk import explained
from dualread.store.manifest import RECORD_NAME, Manifest
from dualread.store.store import Store

# Small entries take the disk's latency rather than its bandwidth.
_THREADS = 8
_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Copied:
    """What happened to one entry: `size` in bytes if copied, `problem` if refused, neither if already present."""

    key: str
    size: int | None = None
    problem: str | None = None


def copy_entries(keys: Iterable[str], source: Store, target: Store) -> Iterator[Copied]:
    """Copy those entries `keys` of `source` that `target` lacks, and yield what happened to each, in the same order.

    A damaged entry of the source is refused and the others are copied. An entry of the target with wrong file sizes is
    replaced.

    Raises:
        ArtifactError: The target cannot be written.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(lambda key: _copy_entry(key, source, target), keys)


def _copy_entry(key: str, source: Store, target: Store) -> Copied:
    if target.lookup(key) is not None:
        return Copied(key=key)
    directory = source.entry(key)
    try:
        manifest = source.manifest(key)
    except ArtifactError as error:
        return Copied(key=key, problem=str(error))
    with target.scratch(key) as scratch:
        for name in manifest.files:
            if problem := _copy_file(name, manifest, directory, scratch, target):
                return Copied(key=key, problem=problem)
        if (directory / RECORD_NAME).is_file():
            _write(scratch / RECORD_NAME, (directory / RECORD_NAME).read_bytes(), target)
        target.adopt(scratch, manifest)
    return Copied(key=key, size=sum(file["size"] for file in manifest.files.values()))


def _copy_file(name: str, manifest: Manifest, directory: Path, scratch: Path, target: Store) -> str | None:
    """Copy one file of an entry; return a problem if its contents are wrong, else None."""
    path, copy, expected = directory / name, scratch / name, manifest.files[name]["sha256"]
    copy.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    try:
        file = path.open("rb")
    except OSError as error:
        return f"{path}: cannot be read ({error.strerror})"
    with file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            _write(copy, chunk, target)
    copy.touch()  # an empty file has no chunks
    found = digest.hexdigest()
    return None if found == expected else f"{path}: sha256 {found[:12]}, expected {expected[:12]}"


def _write(path: Path, content: bytes, target: Store) -> None:
    try:
        with path.open("ab") as file:
            file.write(content)
    except OSError as error:
        raise explained(error, target.root) from error

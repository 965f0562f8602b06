"""What no study reaches: entries of the store, work that was killed, results in the making, damaged entries.

Reached is what a MANIFEST.json or a results.lock of a study names, in any results folder that is registered in the
store, and all that it was made from. Of the rest, this stays:

- what was written within the last hour: a workflow that runs now may be about to link it;
- what a living process holds: the lease of its work, or its scratch directory on this host;
- for a week, what a killed training left to go on from, and scratch of other hosts, of which nobody here knows whether
  they live.
"""

import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dualread.errors import ArtifactError
from dualread.store.lock import LOCK_NAME, read_lock
from dualread.store.manifest import MANIFEST_NAME, read_manifest
from dualread.store.partial import is_held
from dualread.store.reach import keys_below, reachable
from dualread.store.roots import Root, registered
from dualread.store.store import HOST, Store, is_alive

_HOUR = 3600.0
_WEEK = 7 * 24 * _HOUR


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """Something in the store that no study reaches.

    Attributes:
        path: Its directory.
        kind: The stage of an entry, or what else it is.
        key: The entry that it is, was or was to be.
        seconds: Since something in it was last written.
        size: Bytes of its files.
        freed: Bytes of those files that have no other name (a hard link in some results folder).
        kept: Why it stays; None where it may go.
    """

    path: Path
    kind: str
    key: str
    seconds: float
    size: int
    freed: int
    kept: str | None


def leftovers(
    store: Store, *, results: Iterable[Path], locks: Iterable[Path] = (), lost: Collection[Root] = ()
) -> Iterator[Leftover]:
    """Yield what no study in the `results` folders and in the registered ones reaches; changes nothing.

    Args:
        store: Where to look.
        results: Folders with studies, registered or not.
        locks: What they name is reached, too.
        lost: Registered folders that do not count.

    Raises:
        ArtifactError: A folder, a manifest or a lock cannot be read: what it names would be taken for unreached.
    """
    wanted = {key for lock in locks for key in read_lock(lock).target_keys}
    known = [root.folder for root in registered(store) if root not in lost]
    for folder in dict.fromkeys(folder.resolve() for folder in (*results, *known)):
        if not folder.is_dir():
            raise ArtifactError(f"{folder}: no such folder, so that nothing would be reached. Name the results folder.")
        wanted |= keys_below(folder, store)
        wanted.update(key for lock in folder.glob(f"*/{LOCK_NAME}") for key in read_lock(lock).target_keys)
    reached = set(reachable(wanted, store))
    for key in store.stored_keys():
        if key not in reached:
            yield _leftover(store.entry(key), _stage(store.entry(key)), key, _kept_entry(store, key))
    for folder in _directories(store.root / "partial"):
        lease = folder.with_name(f"{folder.name}.lease")
        finished = store.entry(folder.name).is_dir()
        yield _leftover(folder, "work of a killed job", folder.name, "in use" if is_held(lease) else None, not finished)
    for folder in _directories(store.root / "tmp"):
        key, host, pid, *_ = [*folder.name.split("."), "", ""]
        here = host == HOST and pid.isdecimal()
        kept = "in use" if here and is_alive(int(pid)) else None
        yield _leftover(folder, "unfinished result", key, kept, not here)
    for folder in _directories(store.root / "damaged"):
        yield _leftover(folder, "damaged entry", folder.name.partition(".")[0], None)


def remove(leftover: Leftover, store: Store) -> None:
    """Remove it: out of sight with one rename, then file by file, so that no kill leaves half an entry.

    Raises:
        ArtifactError: It cannot be removed.
    """
    hidden = store.root / "tmp" / f"{leftover.key}.{HOST}.{os.getpid()}.{leftover.path.name[-8:]}{time.time_ns()}"
    try:
        hidden.parent.mkdir(exist_ok=True)
        leftover.path.rename(hidden)
        shutil.rmtree(hidden)
        if leftover.path.parent.name == "partial":
            leftover.path.with_name(f"{leftover.path.name}.lease").unlink(missing_ok=True)
    except FileNotFoundError:
        return  # another process was faster
    except OSError as error:
        raise ArtifactError(f"{leftover.path}: cannot be removed ({error}). Ask its owner.") from error


def _kept_entry(store: Store, key: str) -> str | None:
    return "in use" if is_held(store.root / "partial" / f"{key}.lease") else None


def _leftover(path: Path, kind: str, key: str, kept: str | None, resumable: bool = False) -> Leftover:
    size = freed = 0
    # Hard links change a file's ctime and entries are renamed into place, so that the folders' mtime is what counts.
    newest = 0.0
    for parent, _, files in os.walk(path):
        newest = max(newest, os.stat(parent).st_mtime)
        for name in files:
            status = os.lstat(os.path.join(parent, name))
            newest = max(newest, status.st_mtime)
            size += status.st_size
            freed += status.st_size if status.st_nlink == 1 else 0
    seconds = time.time() - newest
    if kept is None and seconds < _HOUR:
        kept = "written within the last hour"
    elif kept is None and resumable and seconds < _WEEK:
        kept = "for a week, to go on from" if kind.startswith("work") else "another host may be at it"
    return Leftover(path=path, kind=kind, key=key, seconds=seconds, size=size, freed=freed, kept=kept)


def _stage(directory: Path) -> str:
    try:
        return read_manifest(directory / MANIFEST_NAME).action.stage
    except ArtifactError:
        return "damaged entry"


def _directories(folder: Path) -> Sequence[Path]:
    return sorted(path for path in folder.glob("*") if path.is_dir())

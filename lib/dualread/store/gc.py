"""Find and remove what no study needs: entries, their batches, checkpoints of killed jobs, scratch directories.

A study needs the artifacts that its MANIFEST.json files and its results.lock name, everything that these were made
from, and the batches of all these. All results folders registered in the store count. Of the rest, this is kept:

- what was written within the last hour, because a running workflow may be about to link it;
- what a running process uses: the folder whose lease it holds, or its scratch directory on this host;
- for a week: what killed jobs can go on from, and scratch directories of other hosts, whose processes may still run.
"""

import os
import shutil
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dualread.errors import ArtifactError
from dualread.store.batches import RECORDED, batch_files
from dualread.store.copy import LOCK_NAME, read_lock
from dualread.store.disk import described, make_folder
from dualread.store.graph import keys_below, reachable
from dualread.store.partial import is_held
from dualread.store.place import Root, registered
from dualread.store.record import HOST, is_alive
from dualread.store.store import Store

_HOUR = 3600.0
_WEEK = 7 * 24 * _HOUR
_KILLED, _DAMAGED = "work of a killed job", "damaged entry"
BATCH = "batch of answers"


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A directory of the store that no study needs, or the file of a batch."""

    path: Path  # the directory or file
    kind: str  # the stage of an entry, or a description of anything else
    key: str  # the key of the entry, or of the entry that the directory was meant for
    seconds: float  # time since something in it was last written
    size: int  # size of its files, in bytes
    freed: int  # bytes that removing it frees: files with a hard link elsewhere, as in a results folder, do not count
    kept: str | None  # why it is kept for now; None if it may be removed


def leftovers(
    store: Store,
    *,
    results: Iterable[Path],
    locks: Iterable[Path] = (),
    lost: Collection[Root] = (),
    batches: bool = False,
) -> Iterator[Leftover]:
    """Yield what no study in the `results` folders and in the registered folders needs; change nothing.

    What `locks` name is needed as well; registered folders that are `lost` are ignored. With `batches`, those of
    entries that are needed are listed, too: no entry is made from them again.
    """
    wanted = {key for lock in locks for key in read_lock(lock).target_keys}
    known = [root.folder for root in registered(store) if root not in lost]
    for folder in dict.fromkeys(folder.resolve() for folder in (*results, *known)):
        if not folder.is_dir():
            raise ArtifactError(
                f"{folder}: no such folder, so nothing would be kept. Give the results folder (--results)."
            )
        wanted |= keys_below(folder, store)
        wanted.update(key for lock in folder.glob(f"*/{LOCK_NAME}") for key in read_lock(lock).target_keys)
    for key in store.stored_keys():  # a file of it may have a hard link elsewhere
        files = (os.path.join(parent, name) for parent, _, names in os.walk(store.entry(key)) for name in names)
        wanted |= {key} if any(os.lstat(file).st_nlink > 1 for file in files) else set()
    reached = set(reachable(wanted, store))
    for key in store.stored_keys():
        if key not in reached:
            kept = "in use" if is_held(store.root / "partial" / f"{key}.lease") else None
            manifest = store.find(key)
            yield _leftover(store.entry(key), manifest.action.stage if manifest else _DAMAGED, key, kept)
    for folder in _directories(store.root / "partial"):
        kept = "in use" if is_held(folder.with_name(f"{folder.name}.lease")) else None
        yield _leftover(folder, _KILLED, folder.name, kept, not store.entry(folder.name).is_dir())
    for folder in _directories(store.root / "tmp"):
        key, host, pid, *_ = [*folder.name.split("."), "", ""]
        here = host == HOST and pid.isdecimal()
        kept = "in use" if here and is_alive(int(pid)) else None
        yield _leftover(folder, "unfinished result", key, kept, not here)
    recorded = {key: store.record(key).get(RECORDED, ()) for key in store.stored_keys()}
    finished = {name for names in recorded.values() for name in names}
    needed = set() if batches else {name for key in reached for name in recorded.get(key, ())}
    for file in batch_files(store):
        if (name := file.name.partition(".")[0]) not in needed:
            yield _leftover(file, BATCH, name, None, name not in finished)
    for folder in (*_directories(store.root / "damaged"), *sorted(store.root.glob("??/*.damaged.*"))):
        yield _leftover(folder, _DAMAGED, folder.name.partition(".")[0], None)


def remove(leftover: Leftover, store: Store) -> None:
    """Remove a leftover: rename it into tmp/, then delete its files, so that a kill never leaves half an entry."""
    hidden = store.root / "tmp" / f"{leftover.key}.{HOST}.{os.getpid()}.{leftover.path.name[-8:]}{time.time_ns()}"
    try:
        make_folder(hidden.parent, store.root)
        leftover.path.rename(hidden)
        shutil.rmtree(hidden) if hidden.is_dir() else hidden.unlink()
        if leftover.path.parent.name == "partial":
            leftover.path.with_name(f"{leftover.path.name}.lease").unlink(missing_ok=True)
    except FileNotFoundError:
        return  # another process has removed it
    except OSError as error:
        raise ArtifactError(
            f"{described(leftover.path)}: cannot be removed ({error.strerror}). Ask its owner to remove it."
        ) from error


def _leftover(path: Path, kind: str, key: str, kept: str | None, resumable: bool = False) -> Leftover:
    paths = [path]
    for parent, folders, files in os.walk(path):
        paths += [Path(parent, name) for name in (*folders, *files)]
    # The mtimes of folders count as well: a new hard link changes only a file's ctime, a rename only a folder's mtime.
    statuses = [os.lstat(each) for each in paths]
    seconds = time.time() - max(status.st_mtime for status in statuses)
    sizes = [(status.st_size, status.st_nlink) for status in statuses if not stat.S_ISDIR(status.st_mode)]
    size, freed = sum(n for n, _ in sizes), sum(n for n, links in sizes if links == 1)
    if kept is None and seconds < _HOUR:
        kept = "written within the last hour"
    elif kept is None and resumable and seconds < _WEEK:
        kept = "for a week, to resume from" if kind in (_KILLED, BATCH) else "another host may be using it"
    return Leftover(path=path, kind=kind, key=key, seconds=seconds, size=size, freed=freed, kept=kept)


def _directories(folder: Path) -> Sequence[Path]:
    return sorted(path for path in folder.glob("*") if path.is_dir())

"""Before a run: what a person, a disk or a clock has done to the results since they were written.

Snakemake looks at the time of each MANIFEST.json and at nothing else. So a damaged result loses its MANIFEST.json
here, and is made again where it is needed. So does a whole one that came in the place of another, out of a backup, say:
it is not newer than the study's results.lock, and has another key than stands there. And one from the future, which
Snakemake would refuse to build on, gets the time of now.
"""

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from dualread.errors import ArtifactError
from dualread.progress import say
from dualread.store.lock import LOCK_NAME, read_lock
from dualread.store.manifest import MANIFEST_NAME, Manifest, read_manifest
from dualread.store.reach import artifacts_below
from dualread.store.store import Store


def mend(results: Path, store: Store) -> None:
    """Name every damaged artifact below `results` and take its MANIFEST.json away; set times of the future to now.

    A file is read only if its size or its time is not that of the store's, or if it is newer than its MANIFEST.json,
    which is written last. Damage that leaves both as they were is found by the stage that would have read it.

    Raises:
        ArtifactError: A damaged entry cannot be moved away.
    """
    locked, ended = _last_end(results / LOCK_NAME)
    for path in (directory / MANIFEST_NAME for directory in artifacts_below(results, store)):
        key = locked.get(path.parent.relative_to(results).as_posix(), {}).get("key")
        if problems := list(_problems(path, store, key, ended)):
            for problem in problems[:3]:
                say(f"warning: damaged result: {problem}")
            path.unlink(missing_ok=True)
            say(f"warning: removed {path}; what it is of is made again where it is needed")
        elif path.stat().st_mtime > (now := time.time()):
            os.utime(path, (now, now))


def mend_copies(tables: Path, results: Path, study: str) -> None:
    """Name and remove copies in `tables` that are no longer what they were copied from, so that they are made again.

    A copy that another study marked is that study's, and one that is older than its artifact is about to be renewed.

    Args:
        tables: Holds <table>.tex, marked with its study in the first line, and <table>.csv.
        results: Holds the artifact <table>/ of each.
        study: The name that counts here.
    """
    mark = f"% study: {study}\n".encode()
    for source in sorted(path for kind in ("tex", "csv") for path in results.glob(f"*/*.{kind}")):
        copy, marked = tables / source.name, tables / f"{source.stem}.tex"
        try:
            first = marked.read_bytes().partition(b"\n")[0] + b"\n" if marked.exists() else mark
            other = first != mark and first.startswith(b"% study: ")
            renewed = copy.stat().st_mtime < (source.parent / MANIFEST_NAME).stat().st_mtime
            expected = (mark if source.suffix == ".tex" else b"") + source.read_bytes()
            if other or renewed or copy.read_bytes() == expected:
                continue
        except OSError:
            continue  # missing: Snakemake sees that by itself
        for kind in ("tex", "csv"):  # one job makes both, and runs for the first alone
            (tables / f"{source.stem}.{kind}").unlink(missing_ok=True)
        say(f"warning: damaged copy: {copy}: differs from {source}; removed, and made again when it is asked for")


def _last_end(path: Path) -> tuple[Mapping[str, Mapping[str, str]], int]:
    """Return what the targets were when a run last ended well, and when (ns); nothing where that is not known."""
    if not path.exists():
        return {}, 0
    try:
        lock, written = read_lock(path), path.stat().st_mtime_ns
    except ArtifactError as error:
        say(f"warning: {error}")
        return {}, 0
    # Of the future, where a clock was moved back: then all that is made from now on would be older.
    return (lock.targets, written) if written <= time.time_ns() else ({}, 0)


def _problems(path: Path, store: Store, key: str | None, ended: int) -> Iterator[str]:
    """Yield what is wrong with an artifact that had `key` when a run last ended well."""
    try:
        manifest = read_manifest(path)
    except ArtifactError as error:
        yield str(error)
        return
    directory, entry, written = path.parent, store.entry(manifest.key), path.stat().st_mtime_ns
    if key and key != manifest.key and written <= ended:
        yield f"{directory}: an older result ({manifest.key[:8]}) is in the place of the last run's ({key[:8]})"
    names = [name for name in manifest.files if _may_differ(f"{directory}/{name}", f"{entry}/{name}", written)]
    problems = list(_of(manifest, names).wrong_bytes(directory))
    # Results are links into the store: what is wrong here may be wrong there.
    if problems and entry.is_dir() and (damage := list(_of(manifest, names).wrong_bytes(entry))):
        store.condemn(manifest.key, damage)
    yield from problems


def _may_differ(file: str, stored: str, written: int) -> bool:
    try:
        here, there = os.stat(file), os.stat(stored)
    except OSError:
        return True
    return here.st_mtime_ns > written or (here.st_size, here.st_mtime_ns) != (there.st_size, there.st_mtime_ns)


def _of(manifest: Manifest, names: list[str]) -> Manifest:
    return replace(manifest, files={name: manifest.files[name] for name in names})

"""Before a run: what a person, a disk or a clock has done to the results since they were written.

Snakemake looks at the time of each MANIFEST.json and at nothing else. So a damaged result loses its MANIFEST.json
here, and is made again where it is needed. So does a whole one that came in the place of another, out of a backup, say:
it is not newer than the study's results.lock, and has another key than stands there. One from the future, which
Snakemake would refuse to build on, gets the time of now. And a whole one whose entry the store lacks gives it back.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from dualread.errors import ArtifactError
from dualread.progress import say
from dualread.store.digest import StatCache
from dualread.store.link import put_back
from dualread.store.lock import LOCK_NAME, read_lock
from dualread.store.manifest import MANIFEST_NAME, Manifest, read_manifest
from dualread.store.reach import artifacts_below
from dualread.store.store import Store

_LARGE = 2**26  # bytes
_MARK = b"% study: "
# What is copied to where people look for it; of each, the first is the one that jobs are asked for.
_COPIES = {"tables": ("tex", "csv"), "figures": ("pdf", "png", "csv")}


def check_folders(*folders: Path) -> None:
    """Refuse what stands where a folder is needed: a file, or a link to nowhere.

    Raises:
        ArtifactError: Something does.
    """
    for folder in folders:
        if os.path.lexists(folder) and not folder.is_dir():
            raise ArtifactError(f"{folder}: not a folder, but results go there. Move it away, or name another place.")


def mend(results: Path, store: Store) -> None:
    """Name every damaged artifact below `results` and take its MANIFEST.json away; mend what else is not as it was.

    A file is read only if something has touched it after its MANIFEST.json was written, which is done last, or if its
    size or its time is not that of the store's. Of large files, a touch that left the time as it was does not count:
    each new link is one, and the stage that would have computed from the file reads it anyway.

    Raises:
        ArtifactError: A damaged entry cannot be moved away.
    """
    cache = StatCache(store.root / "stat-cache.json")
    locked, ended = _last_end(results / LOCK_NAME)
    returned = []
    for path in (directory / MANIFEST_NAME for directory in artifacts_below(results, store)):
        key = locked.get(path.parent.relative_to(results).as_posix(), {}).get("key")
        try:
            manifest = read_manifest(path)
        except ArtifactError as error:
            manifest, problems = None, [str(error)]
        else:
            problems = list(_problems(manifest, path, store, cache, key, ended))
        if manifest is None or problems:
            for problem in problems[:3]:
                say(f"warning: damaged result: {problem}")
            path.unlink(missing_ok=True)
            say(f"warning: removed {path}; what it is of is made again where it is needed")
            continue
        if path.stat().st_mtime > (now := time.time()):
            os.utime(path, (now, now))
        entry = store.entry(manifest.key)
        if not os.path.lexists(entry) and put_back(path.parent, manifest, store):
            returned.append(entry)
    cache.save()
    if returned:
        say(f"warning: the store lacked {len(returned):,} entries, such as {returned[0]}; put back from {results}")


def mend_copies(root: Path, results: Path, study: str) -> None:
    """Name and remove copies of tables and figures that are not what they are copies of, so that they are made again.

    Copies of another study that has results are left to it, and those older than their artifact to Snakemake, which
    renews them. Where the artifact is gone, nobody can tell whether its copy is whole, and Snakemake would not ask.

    Args:
        root: Holds tables/<table>.tex and .csv, figures/<figure>.pdf, .png and .csv.
        results: Holds the artifacts tables/<table>/ and figures/<figure>/.
        study: The name that counts here.
    """
    for folder, kinds in _COPIES.items():
        for first in sorted((root / folder).glob(f"*.{kinds[0]}")):
            source = results / folder / first.stem
            copies = {first.with_suffix(f".{kind}"): source / f"{first.stem}.{kind}" for kind in kinds}
            with contextlib.suppress(OSError):
                if problem := _wrong_copy(copies, source / MANIFEST_NAME, study):
                    for copy in copies:  # one job makes all of them
                        copy.unlink(missing_ok=True)
                    say(f"warning: damaged copy: {problem}; removed, and made again when it is asked for")


def _wrong_copy(copies: Mapping[Path, Path], manifest: Path, study: str) -> str | None:
    first, named = next(iter(copies)), _study_of(copies)
    if not manifest.exists():
        return f"{first}: {manifest.parent}, which it is a copy of, is gone" if named == study else None
    results = manifest.parents[3]
    if first.stat().st_mtime < manifest.stat().st_mtime or (named != study and (results / (named or "-")).is_dir()):
        return None
    for copy, source in copies.items():
        mark = _MARK + study.encode() + b"\n" if copy.suffix == ".tex" else b""
        if not copy.is_file():
            return f"{copy}: missing beside the others"
        if copy.read_bytes() != mark + source.read_bytes():
            return f"{copy}: differs from {source}"
    return None


def _study_of(copies: Mapping[Path, Path]) -> str | None:
    """Return the study that a copy names: a .tex in its first line, else the .csv below its header."""
    path = next(copy for copy in copies if copy.suffix in (".tex", ".csv"))
    head, _, rest = (path.read_bytes() if path.is_file() else b"").partition(b"\n")
    name = rest.partition(b",")[0] if path.suffix == ".csv" else head.removeprefix(_MARK)
    return name.decode(errors="replace") if path.suffix == ".csv" or head.startswith(_MARK) else None


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


def _problems(
    manifest: Manifest, path: Path, store: Store, cache: StatCache, key: str | None, ended: int
) -> Iterator[str]:
    """Yield what is wrong with the artifact at `path`, which had `key` when a run last ended well."""
    directory, entry, written = path.parent, store.entry(manifest.key), path.stat().st_mtime_ns
    if manifest.place != str(directory):
        yield f"{directory}: is a copy of {manifest.place or 'an entry of the store'}"
        return
    if key and key != manifest.key and written <= ended:
        yield f"{directory}: an older result ({manifest.key[:8]}) is in the place of the last run's ({key[:8]})"
        return
    if written > time.time_ns():
        written = 0  # a clock was moved, and nobody knows what came after what
    names = [
        name
        for name, of in manifest.files.items()
        if _may_differ(f"{directory}/{name}", f"{entry}/{name}", of["size"], written)
    ]
    problems = list(_of(manifest, names).wrong_bytes(directory, cache.sha256))
    # Results are links into the store: what is wrong here may be wrong there.
    if problems and entry.is_dir() and (damage := list(_of(manifest, names).wrong_bytes(entry))):
        store.condemn(manifest.key, damage)
    yield from problems


def _may_differ(file: str, stored: str, size: int, written: int) -> bool:
    try:
        here, there = os.stat(file), os.stat(stored)
    except OSError:
        return True
    touched = max(here.st_mtime_ns, here.st_ctime_ns if here.st_size <= _LARGE else 0)
    return touched > written or here.st_size != size or here.st_mtime_ns != there.st_mtime_ns


def _of(manifest: Manifest, names: list[str]) -> Manifest:
    return replace(manifest, files={name: manifest.files[name] for name in names})

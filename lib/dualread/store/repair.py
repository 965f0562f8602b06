"""Check the results before a run: people, disks and clocks may have changed them since they were written.

Snakemake looks only at the time of each MANIFEST.json. Therefore:

- A damaged artifact is linked again from the store if its entry there is whole. Otherwise its MANIFEST.json is removed,
  so that the artifact is recomputed if it is needed.
- A MANIFEST.json with a time in the future, on which Snakemake would refuse to build, gets the current time.
- An intact artifact whose entry is missing in the store is put back into the store.

Whether an intact artifact is still what would be made is another question (`dualread.study.stale`).
"""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from dualread.errors import ArtifactError
from dualread.progress import say
from dualread.store.digest import MANIFEST_NAME, StatCache
from dualread.store.link import link, put_back
from dualread.store.manifest import Manifest, read_manifest
from dualread.store.place import STUDY_MARK
from dualread.store.reach import artifacts_below
from dualread.store.store import Store

_LARGE = 2**26  # bytes
_MARK = STUDY_MARK.encode()
# The files that are copied to tables/ and figures/. The workflow requests the first kind of each.
_COPIES = {"tables": ("tex", "csv"), "figures": ("pdf", "png", "csv")}


def check_folders(*folders: Path) -> None:
    """Check that nothing but a folder is at the paths `folders`; they need not exist.

    Raises:
        ArtifactError: A file or a broken link is at one of them.
    """
    for folder in folders:
        if os.path.lexists(folder) and not folder.is_dir():
            raise ArtifactError(
                f"{folder}: is not a folder, but results go there. Move it away or choose another path."
            )


def mend(results: Path, store: Store) -> dict[str, Manifest]:
    """Report every damaged artifact below `results`; link it again or remove its MANIFEST.json (see the module).

    Return the artifacts that are whole, by directory.

    A file is read only if it was changed after its MANIFEST.json, which is written last, or if its size or mtime
    differs from that of the store's file. For large files, a newer ctime alone does not count as a change: every new
    hard link sets it, and the stage that computes from the file verifies it anyway.

    """
    cache = StatCache(store.root / "stat-cache.json")
    found, returned = {}, []
    for path in (directory / MANIFEST_NAME for directory in artifacts_below(results, store)):
        manifest, problems = _found(path, store, cache)
        for problem in problems[:3]:
            say(f"warning: damaged result: {problem}")
        if manifest is None or (problems and not _linked_again(manifest, path, store)):
            path.unlink(missing_ok=True)
            say(
                f"warning: removed {path}; the artifact is made again when something needs it. To have it now, run"
                f" `snakemake --cores 1 {path}` with the study's --configfile."
            )
            continue
        found[str(path.parent)] = manifest
        if path.stat().st_mtime > (now := time.time()):
            os.utime(path, (now, now))
        entry = store.entry(manifest.key)
        if not os.path.lexists(entry) and put_back(path.parent, manifest, store):
            returned.append(entry)
    cache.save()
    if returned:
        say(f"warning: the store lacked {len(returned):,} entries, such as {returned[0]}; restored from {results}")
    return found


def mend_copies(root: Path, results: Path, study: str) -> None:
    """Report and remove copies of tables and figures that differ from their artifacts, so that they are copied again.

    Copies that belong to another study with results are left alone. So are copies older than their artifact, which
    Snakemake renews. A copy whose artifact is gone is removed: it cannot be checked, and Snakemake would keep it.

    Args:
        root: Holds tables/<table>.tex and .csv, figures/<figure>.pdf, .png and .csv.
        results: Holds the artifacts tables/<table>/ and figures/<figure>/.
        study: The study's name.
    """
    for folder, kinds in _COPIES.items():
        for first in sorted((root / folder).glob(f"*.{kinds[0]}")):
            source = results / folder / first.stem
            copies = {first.with_suffix(f".{kind}"): source / f"{first.stem}.{kind}" for kind in kinds}
            with contextlib.suppress(OSError):
                if problem := _wrong_copy(copies, source / MANIFEST_NAME, study):
                    for copy in copies:  # one job makes all of them
                        copy.unlink(missing_ok=True)
                    say(f"warning: damaged copy: {problem}; removed it, and it will be copied again when requested")


def wrong_copies(copies: Mapping[Path, Path], first_line: str) -> Iterator[Path]:
    """Yield the copies that differ from their sources, or have none: they are of another study, or of a lost result.

    Args:
        copies: Source of each copy, by copy.
        first_line: What the copy of a .tex has before its source.
    """
    for copy, source in copies.items():
        mark = f"{first_line}\n".encode() if copy.suffix == ".tex" else b""
        if copy.is_file() and not (source.is_file() and copy.read_bytes() == mark + source.read_bytes()):
            yield copy


def _wrong_copy(copies: Mapping[Path, Path], manifest: Path, study: str) -> str | None:
    first, named = next(iter(copies)), _study_of(copies)
    if not manifest.exists():
        return f"{first}: its artifact {manifest.parent} is gone" if named == study else None
    results = manifest.parents[3]
    if first.stat().st_mtime < manifest.stat().st_mtime or (named != study and (results / (named or "-")).is_dir()):
        return None
    for copy, source in copies.items():
        if not copy.is_file():
            return f"{copy}: missing beside {first.name}"
        content = copy.read_bytes()
        if copy.suffix == ".tex":
            head, _, content = content.partition(b"\n")
        if content != source.read_bytes() or (copy.suffix == ".tex" and _marked(head) != study):
            return f"{copy}: differs from {source}"
    return None


def _study_of(copies: Mapping[Path, Path]) -> str | None:
    """Return the study that a copy belongs to, from the first line of the .tex, or from the .csv's first row."""
    path = next(copy for copy in copies if copy.suffix in (".tex", ".csv"))
    head, _, rest = (path.read_bytes() if path.is_file() else b"").partition(b"\n")
    return rest.partition(b",")[0].decode(errors="replace") if path.suffix == ".csv" else _marked(head)


def _marked(head: bytes) -> str | None:
    """Return the study that the first line of a .tex names; more about the table may follow."""
    words = head.removeprefix(_MARK).decode(errors="replace").split()
    return words[0] if head.startswith(_MARK) and words else None


def _found(path: Path, store: Store, cache: StatCache) -> tuple[Manifest | None, list[str]]:
    """Return the manifest at `path` and what is wrong with its files; None and why if it does not belong there."""
    try:
        manifest = read_manifest(path)
    except ArtifactError as error:
        return None, [str(error)]
    if manifest.place != str(path.parent):
        return None, [f"{path.parent}: was copied here from {manifest.place or 'an entry of the store'}"]
    return manifest, _damage(manifest, path, store, cache)


def _damage(manifest: Manifest, path: Path, store: Store, cache: StatCache) -> list[str]:
    """Return what is wrong with the files of the artifact at `path`; move its entry away if that is damaged as well."""
    directory, entry, written = path.parent, store.entry(manifest.key), path.stat().st_mtime_ns
    if written > time.time_ns():
        written = 0  # a clock was changed, so times do not tell what happened first
    names = [
        name
        for name, file in manifest.files.items()
        if _may_differ(f"{directory}/{name}", f"{entry}/{name}", file["size"], written)
    ]
    problems = list(_only(names, manifest).wrong_bytes(directory, cache.sha256)) if names else []
    # The files are hard links to the store's, so the damage may be in the store as well.
    if problems and entry.is_dir() and (damage := list(_only(names, manifest).wrong_bytes(entry))):
        try:
            store.condemn(manifest.key, damage)
        except ArtifactError as error:  # of somebody else; a job that needs the entry will say so, too
            say(f"warning: {error}")
    return problems


def _linked_again(manifest: Manifest, path: Path, store: Store) -> bool:
    """Link a damaged artifact again if the store has the same files; return whether that succeeded.

    Snakemake does not make an artifact again that nothing needs for now, such as the reader behind finished tables.
    MANIFEST.json keeps its time, so that nothing runs again for a repair.
    """
    written = path.stat().st_mtime_ns
    try:
        if store.lookup(manifest.key) != manifest:
            return False
        link(store.entry(manifest.key), manifest, path.parent)
    except ArtifactError as error:
        say(f"warning: {error}")
        return False
    os.utime(path, ns=(written, written))
    say(f"warning: linked {path.parent} again from the store, where it is whole")
    return True


def _may_differ(file: str, stored: str, size: int, written: int) -> bool:
    try:
        here, there = os.stat(file), os.stat(stored)
    except OSError:
        return True
    touched = max(here.st_mtime_ns, here.st_ctime_ns if here.st_size <= _LARGE else 0)
    return touched > written or here.st_size != size or here.st_mtime_ns != there.st_mtime_ns


def _only(names: list[str], manifest: Manifest) -> Manifest:
    return replace(manifest, files={name: manifest.files[name] for name in names})

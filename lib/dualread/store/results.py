"""What is below results/: hard links to the files of an entry and a copy of its manifest, checked before each run.

People, disks and clocks may change results after they were written, and Snakemake looks only at the time of each
MANIFEST.json. Therefore:

- A damaged artifact is linked again from the store if its entry there is whole. Otherwise its MANIFEST.json is removed,
  so that the artifact is recomputed if it is needed.
- A MANIFEST.json with a time in the future, on which Snakemake would refuse to build, gets the current time.
- An intact artifact whose entry is missing in the store is put back into the store.

Whether an intact artifact is still what would be made is another question (`dualread.study.stale`).
"""

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dualread.digests import MANIFEST_NAME
from dualread.errors import ArtifactError
from dualread.progress import say
from dualread.store.digest import StatCache, content, replace_text
from dualread.store.graph import artifacts_below
from dualread.store.manifest import Manifest, read_manifest
from dualread.store.record import is_alive
from dualread.store.store import Store

# Hard links are impossible: another device, no support, too many links, or files of another owner (a shared store).
_NO_HARD_LINK = (errno.EXDEV, errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
_LARGE = 2**26  # bytes


def link(entry: Path, manifest: Manifest, output: Path) -> None:
    """Fill `output` with hard links to the files of `entry` and a copy of MANIFEST.json, which is written last.

    The copy records `output` as its place, so that it is noticed when somebody copies the folder elsewhere.

    MANIFEST.json always gets a new time, because Snakemake tracks that file. Files that are already linked are left
    alone. There is no MANIFEST.json until all files are right, so a directory that has one is complete.
    """
    manifest_text = replace(manifest, place=str(output)).to_bytes()
    try:
        output.mkdir(parents=True, exist_ok=True)
        stale = [name for name in manifest.files if not _is_same(entry / name, output / name)]
        if stale or content(output / MANIFEST_NAME) != manifest_text:
            (output / MANIFEST_NAME).unlink(missing_ok=True)
        for name in stale:
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            _link_file(entry / name, output / name)
        _remove_strays(output, manifest)
        replace_text(output / MANIFEST_NAME, manifest_text.decode())
    except OSError as error:
        raise ArtifactError(
            f"{output}: cannot write the result here ({error}). The result is safe in {entry}."
            " Make the folder writable, or move away what blocks it, and run the same command again."
        ) from error


def put_back(directory: Path, manifest: Manifest, store: Store) -> bool:
    """Recreate the missing entry of an intact artifact from the files in `directory`; return whether that succeeded.

    The files are linked, or copied if they are on another device. The RECORD.json (times, host) is lost. The store may
    be read-only or full; then nothing is done.
    """
    with contextlib.suppress(OSError, ArtifactError), store.scratch(manifest.key) as scratch:
        for name in manifest.files:
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            if not _hard_link(directory / name, scratch / name):
                shutil.copyfile(directory / name, scratch / name)
        store.adopt(scratch, replace(manifest, place=None))
        return True
    return False


def _link_file(source: Path, target: Path) -> None:
    # Create the link beside the target and rename it, because creating a link cannot replace an existing file.
    temporary = target.with_name(f".{target.name}.{os.getpid()}.link")
    temporary.unlink(missing_ok=True)
    if not _hard_link(source, temporary):
        temporary.symlink_to(source.absolute())
    temporary.replace(target)
    # Renaming a hard link onto another link to the same file does nothing and leaves both names.
    temporary.unlink(missing_ok=True)


def _hard_link(source: Path, target: Path) -> bool:
    """Make a hard link; return False if none is possible."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_HARD_LINK:
            raise
        return False
    return True


def _is_same(source: Path, target: Path) -> bool:
    try:
        return source.samefile(target)
    except OSError:
        return False


def _remove_strays(output: Path, manifest: Manifest) -> None:
    """Remove files of an earlier artifact from the folders that this artifact uses."""
    # Only read-only files and links, which the store creates, are removed. Other folders are left alone: another
    # artifact may lie below this one, and its job may be writing it now.
    folders = {output, *((output / name).parent for name in manifest.files)}
    kept = {output / name for name in manifest.files} | {output / MANIFEST_NAME}
    for path in (path for folder in sorted(folders) for path in folder.iterdir() if path not in kept):
        *_, pid, suffix = path.name.split(".") if path.name.count(".") > 1 else ("", "")
        if suffix == "link" and pid.isdecimal() and is_alive(int(pid)):
            continue  # a job that survived a killed run is linking the same result
        if path.is_symlink() or (path.is_file() and not path.stat().st_mode & 0o222):
            path.unlink()
        elif path.is_file() and not path.name.startswith("."):
            say(f"warning: {path} is not part of this artifact; it was left in place")


def check_folders(*folders: Path) -> None:
    """Check that nothing but a folder is at the paths `folders`; they need not exist."""
    for folder in folders:
        if os.path.lexists(folder) and not folder.is_dir():
            raise ArtifactError(
                f"{folder}: is not a folder, but results go there. Move it away or choose another path."
            )


def repair(results: Path, store: Store) -> dict[str, Manifest]:
    """Report every damaged artifact below `results`; link it again or remove its MANIFEST.json (see the module).

    Return the artifacts that are whole, by directory.

    A file is read only if it is not the store's file, if it has another size, or if it was changed after its
    MANIFEST.json, which is written last. For large files, a newer ctime alone does not count as a change: every new
    hard link sets it, and the stage that computes from the file verifies it anyway.
    """
    cache = StatCache(store.root / "stat-cache.json")
    intact, returned = {}, []
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
        intact[str(path.parent)] = manifest
        if path.stat().st_mtime > (now := time.time()):
            os.utime(path, (now, now))
        entry = store.entry(manifest.key)
        if not os.path.lexists(entry) and put_back(path.parent, manifest, store):
            returned.append(entry)
    cache.save()
    if returned:
        say(f"warning: the store lacked {len(returned):,} entries, such as {returned[0]}; restored from {results}")
    return intact


def wrong_copies(copies: Mapping[Path, Path], first_line: str) -> list[Path]:
    """Return the copies that differ from their sources, or of which only the copy or only the source is there.

    What is left of an artifact without its MANIFEST.json, as a job that failed leaves it, is no source. The copy of a
    .tex has `first_line` before its source.
    """
    wrong = []
    for copy, source in copies.items():
        made = content(source) if (source.parent / MANIFEST_NAME).is_file() else None
        if made is not None and copy.suffix == ".tex":
            made = f"{first_line}\n".encode() + made
        if made != content(copy):
            wrong.append(copy)
    return wrong


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
            store.quarantine(manifest.key, damage)
        except ArtifactError as error:  # of somebody else; a job that needs the entry will say so, too
            say(f"warning: {error}")
    return problems


def _linked_again(manifest: Manifest, path: Path, store: Store) -> bool:
    """Link a damaged artifact again if the store has the same files; return whether that succeeded."""
    # Snakemake does not make an artifact again that nothing needs for now, such as the reader behind finished tables.
    # MANIFEST.json keeps its time, so that nothing runs again for a repair.
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
    return touched > written or here.st_size != size or not os.path.samestat(here, there)


def _only(names: list[str], manifest: Manifest) -> Manifest:
    return replace(manifest, files={name: manifest.files[name] for name in names})

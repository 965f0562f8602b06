"""What is below results/: hard links to the files of an entry and a copy of its manifest, checked before each run.

People, disks and clocks may change results after they were written, and Snakemake looks only at the time of each
MANIFEST.json. Therefore:

- A damaged artifact is linked again from the store if its entry there is whole. Otherwise its MANIFEST.json is removed,
  so that the artifact is recomputed if it is needed.
- A MANIFEST.json with a time in the future, on which Snakemake would refuse to build, gets the current time.
- An intact artifact whose entry is missing in the store is put back into the store.

Whether an intact artifact is still what would be made: `dualread.study.stale`.
"""

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dualread.digests import MANIFEST_NAME
from dualread.errors import ArtifactError
from dualread.progress import say
from dualread.store.digest import StatCache, content, replace_text
from dualread.store.disk import hard_link, is_same
from dualread.store.graph import artifacts_below
from dualread.store.manifest import Manifest, read_manifest
from dualread.store.record import is_alive
from dualread.store.store import Store

_LARGE = 2**26  # bytes


def link(entry: Path, manifest: Manifest, output: Path) -> None:
    """Fill `output` with hard links to the files of `entry` and a copy of MANIFEST.json, which is written last.

    The copy records `output` as its place, so that it is noticed when somebody copies the folder elsewhere. It always
    gets a new time, because Snakemake tracks it, and there is none until all files are right.
    """
    manifest_text = replace(manifest, place=str(output)).to_bytes()
    try:
        output.mkdir(parents=True, exist_ok=True)
        stale = [name for name in manifest.files if not is_same(entry / name, output / name)]
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


def _link_file(source: Path, target: Path) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.link")  # a link cannot replace a file, a rename can
    temporary.unlink(missing_ok=True)
    if not hard_link(source, temporary):
        temporary.symlink_to(source.absolute())
    temporary.replace(target)
    temporary.unlink(missing_ok=True)  # a rename onto another link to the same file does nothing, and leaves both


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
    """
    cache = StatCache(store.root / "stat-cache.json")
    intact, returned = {}, []
    for path in (directory / MANIFEST_NAME for directory in artifacts_below(results, store)):
        manifest, problems = _checked(path, store, cache)
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
        if not os.path.lexists(entry):
            with contextlib.suppress(OSError, ArtifactError):  # the store may be read-only, or full
                if store.take(manifest, path.parent, link=True) is None:
                    returned.append(entry)
    cache.save()
    if returned:
        say(f"warning: the store lacked {len(returned):,} entries, such as {returned[0]}; restored from {results}")
    return intact


def wrong_copies(copies: Mapping[Path, Path], first_line: str) -> list[Path]:
    """Return the copies that differ from their sources, or of which only the copy or only the source is there.

    The copy of a .tex has `first_line` before its source.
    """

    def expected(copy: Path, source: Path) -> bytes | None:
        # Without its MANIFEST.json, as a job that failed leaves it, an artifact is no source.
        made = content(source) if (source.parent / MANIFEST_NAME).is_file() else None
        return made if made is None or copy.suffix != ".tex" else f"{first_line}\n".encode() + made

    return [copy for copy, source in copies.items() if expected(copy, source) != content(copy)]


def _checked(path: Path, store: Store, cache: StatCache) -> tuple[Manifest | None, list[str]]:
    """Return the manifest at `path` and what is wrong with its files; None and why if it does not belong there.

    Where an entry is damaged as well, it is moved away.
    """
    try:
        manifest = read_manifest(path)
    except ArtifactError as error:
        return None, [str(error)]
    directory, entry, written = path.parent, store.entry(manifest.key), path.stat().st_mtime_ns
    if manifest.place != str(directory):
        return None, [f"{directory}: was copied here from {manifest.place or 'an entry of the store'}"]
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
    return manifest, problems


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
    """Whether a file is not the store's, has another size, or was changed after its MANIFEST.json was `written`."""
    # Every new hard link sets the ctime. Of a large file it does not count: the job that reads it verifies it anyway.
    try:
        here, there = os.stat(file), os.stat(stored)
    except OSError:
        return True
    touched = max(here.st_mtime_ns, here.st_ctime_ns if here.st_size <= _LARGE else 0)
    return touched > written or here.st_size != size or not os.path.samestat(here, there)


def _only(names: list[str], manifest: Manifest) -> Manifest:
    return replace(manifest, files={name: manifest.files[name] for name in names})

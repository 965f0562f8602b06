"""Show a stored artifact below results/: hard links to its files and a copy of its manifest."""

import contextlib
import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path

from dualread.errors import ArtifactError
from dualread.progress import say
from dualread.store.digest import MANIFEST_NAME
from dualread.store.files import replace_text
from dualread.store.manifest import Manifest
from dualread.store.processes import is_alive
from dualread.store.store import Store

# Hard links are impossible: another device, no support, too many links, or files of another owner (a shared store).
_NO_HARD_LINK = (errno.EXDEV, errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


def link(entry: Path, manifest: Manifest, output: Path) -> None:
    """Fill `output` with hard links to the files of `entry` and a copy of MANIFEST.json, which is written last.

    The copy records `output` as its place, so that it is noticed when somebody copies the folder elsewhere.

    MANIFEST.json always gets a new time, because Snakemake tracks that file. Files that are already linked are left
    alone. There is no MANIFEST.json until all files are right, so a directory that has one is complete.

    Raises:
        ArtifactError: `output` cannot be written.
    """
    content = replace(manifest, place=str(output)).to_bytes()
    try:
        output.mkdir(parents=True, exist_ok=True)
        stale = [name for name in manifest.files if not _is_same(entry / name, output / name)]
        if stale or _read(output / MANIFEST_NAME) != content:
            (output / MANIFEST_NAME).unlink(missing_ok=True)
        for name in stale:
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            _link_file(entry / name, output / name)
        _remove_strays(output, manifest)
        replace_text(output / MANIFEST_NAME, content.decode())
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
    """Remove files of an earlier artifact from the folders that this artifact uses.

    Only read-only files and links, which the store creates, are removed. Other folders are left alone: another
    artifact may lie below this one, and its job may be writing it now.
    """
    folders = {output, *((output / name).parent for name in manifest.files)}
    kept = {output / name for name in manifest.files} | {output / MANIFEST_NAME}
    for path in (path for folder in sorted(folders) for path in folder.iterdir() if path not in kept):
        if _is_being_linked(path):
            continue  # a job that survived a killed run is linking the same result
        if path.is_symlink() or (path.is_file() and not path.stat().st_mode & 0o222):
            path.unlink()
        elif path.is_file() and not path.name.startswith("."):
            say(f"warning: {path} is not part of this artifact; it was left in place")


def _is_being_linked(path: Path) -> bool:
    *_, pid, suffix = path.name.split(".") if path.name.count(".") > 1 else ("", "")
    return suffix == "link" and pid.isdecimal() and is_alive(int(pid))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None

"""Put a stored artifact where people look for it: hard links to its files and a copy of its manifest."""

import contextlib
import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path

from dualread.errors import ArtifactError
from dualread.progress import say
from dualread.store.files import replace_text
from dualread.store.manifest import MANIFEST_NAME, Manifest
from dualread.store.store import Store, is_alive

# Where a hard link cannot be: another device, no support, too many links, not the owner (a shared store).
_NO_HARD_LINK = (errno.EXDEV, errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


def link(entry: Path, manifest: Manifest, output: Path) -> None:
    """Make `output` show the stored `entry`: its files as hard links, MANIFEST.json as a copy, written last.

    The copy names `output` as its place, so that a folder which somebody copies over another one is noticed.

    MANIFEST.json always gets a new time stamp, since it is the output that Snakemake tracks; a file that already is
    the stored one is left alone. While anything is wrong with the files there is no MANIFEST.json, so a directory
    that has one is complete.

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
            f"{output}: cannot write the result here ({error}). The result itself is safe in {entry}."
            " Make the folder writable, or move what is in its way, and run the same command again."
        ) from error


def put_back(directory: Path, manifest: Manifest, store: Store) -> bool:
    """Make the entry of the whole artifact `directory`, which the store lacks, of its files; return whether it worked.

    They are linked, or copied from another device. What is not known here, the RECORD.json (times, host), is lost. It
    does not work where the store may only be read, or is full.
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
    # Made beside the target and moved over it, because a link cannot replace what is there.
    temporary = target.with_name(f".{target.name}.{os.getpid()}.link")
    temporary.unlink(missing_ok=True)
    if not _hard_link(source, temporary):
        temporary.symlink_to(source.absolute())
    temporary.replace(target)
    # Renaming one name of a file onto another name of the same file does nothing and leaves both.
    temporary.unlink(missing_ok=True)


def _hard_link(source: Path, target: Path) -> bool:
    """Make a hard link; return False where there cannot be one."""
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
    """Remove files of an earlier artifact from the folders that this one uses.

    Only what the store puts there, read-only files and links, is removed. Other folders are left alone: another
    artifact may lie below this one, and its job may be writing it now.
    """
    folders = {output, *((output / name).parent for name in manifest.files)}
    kept = {output / name for name in manifest.files} | {output / MANIFEST_NAME}
    for path in (path for folder in sorted(folders) for path in folder.iterdir() if path not in kept):
        if _is_in_the_making(path):
            continue  # a run that was killed left a job behind, which links the same result
        if path.is_symlink() or (path.is_file() and not path.stat().st_mode & 0o222):
            path.unlink()
        elif path.is_file() and not path.name.startswith("."):
            say(f"warning: {path} is not part of this artifact; it was left where it is")


def _is_in_the_making(path: Path) -> bool:
    *_, pid, suffix = path.name.split(".") if path.name.count(".") > 1 else ("", "")
    return suffix == "link" and pid.isdecimal() and is_alive(int(pid))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None

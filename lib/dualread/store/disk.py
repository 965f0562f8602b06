"""Writing into a store: who may where, and what the errors of the disk mean.

All that is in a store can be read by everybody who may enter its folder. If the group may write into that folder, it
may write into each folder of the store, whatever the umask of the user is who made it.
"""

import contextlib
import errno
import os
import shlex
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from dualread.errors import ArtifactError, DualReadError

_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # EFBIG: the limit of `ulimit -f`
_NOTHING_FREE = 2**16  # bytes
# Hard links are impossible: another device, no support, too many links, or files of another owner (a shared store).
_NO_HARD_LINK = (errno.EXDEV, errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
_FULL_WORDS = tuple(os.strerror(number) for number in _FULL)
_OF_GROUP = stat.S_IWGRP | stat.S_ISGID  # with the second, the folders in a folder have its group
_NAMED = 3
_HOW = 'docs/cluster.md, "Share a store"'


def make_folder(folder: Path, root: Path) -> None:
    """Make a folder of the store `root`, and the folders above it, unless it is there."""
    missing = [path for path in (folder, *folder.parents) if path.is_relative_to(root) and not path.exists()]
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):
            path.mkdir(parents=True)
            open_folder(path, root)


def open_folder(folder: Path, root: Path) -> None:
    """Let others read a folder that this process has made, and the group write where it may write into `root`."""
    above, mode = root.stat(), stat.S_IMODE(folder.stat().st_mode) | 0o555
    if above.st_mode & stat.S_IWGRP:
        with contextlib.suppress(OSError):  # a group of which this user is no member
            os.chown(folder, -1, above.st_gid)
        mode |= _OF_GROUP
    folder.chmod(mode)


def hard_link(source: Path, target: Path) -> bool:
    """Make a hard link; return False if none is possible."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_HARD_LINK:
            raise
        return False
    return True


def is_same(source: Path, target: Path) -> bool:
    """Return whether two paths are of one file that is there."""
    try:
        return source.samefile(target)
    except OSError:
        return False


def settle(directory: Path, root: Path) -> None:
    """Make all files read-only and readable by others, and sync them to disk before the rename makes them visible."""
    from concurrent.futures import ThreadPoolExecutor  # imported here because a hit does not need it

    paths = list(directory.rglob("*"))
    for path in paths:
        if path.is_dir():
            open_folder(path, root)  # writable: a read-only folder can be neither renamed nor removed
        else:
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222 | 0o444)
    # In parallel, so that the file system can write many small files, such as images, in one go.
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(_sync, paths))
    _sync(directory)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_writable(root: Path) -> None:
    """Check that this user may write into every folder of a store that is there; a file system may be read-only."""
    try:
        folders = [root, *(path for path in sorted(root.iterdir()) if path.is_dir())] if root.exists() else []
    except PermissionError:
        folders = [root]
    closed = [folder for folder in folders if not os.access(folder, os.R_OK | os.W_OK | os.X_OK)]
    if closed and not (os.access(root, os.R_OK) and os.statvfs(root).f_flag & os.ST_RDONLY):
        more = f" and {len(closed) - _NAMED} more" if len(closed) > _NAMED else ""
        named = f"{', '.join(map(described, closed[:_NAMED]))}{more}"
        raise ArtifactError(
            f"{root}: the store has folders that you cannot write to: {named}. Without that, you can neither add"
            f" results nor register yours, which `dualread gc` of others would then remove. {remedy(root)}"
        )


def remedy(root: Path) -> str:
    """Return what the owner of a store's folders does so that the group may write into them."""
    folder = shlex.quote(str(root.absolute()))
    return (
        f"Each owner runs: chgrp -R GROUP {folder}; find {folder} -type d -exec chmod g+rwxs {{}} + ({_HOW});"
        " or set another `store`."
    )


def described(path: Path) -> str:
    """Return a path with its owner, group and mode, as far as they can be seen."""
    try:
        status = path.stat()
    except OSError:
        return str(path)
    owner, group = str(status.st_uid), str(status.st_gid)
    with contextlib.suppress(KeyError):  # they have no name
        owner = path.owner()
        group = path.group()
    return f"{path} (of {owner}, group {group}, mode {stat.S_IMODE(status.st_mode):o})"


def unreadable(folder: Path) -> Iterator[Path]:
    """Yield what this user cannot read below a folder, and folders that this user cannot write to."""
    for path in (folder, *folder.rglob("*")):
        if not os.access(path, os.R_OK | (os.W_OK | os.X_OK if path.is_dir() else 0)):
            yield path


def explained(error: OSError, store: Path) -> ArtifactError:
    """Return the error to raise in place of `error`, which the file system gave while the store was written."""
    if error.errno in _FULL:
        return ArtifactError(no_space(store))
    if error.errno in _UNWRITABLE:
        folder = Path(os.fsdecode(error.filename)).parent if error.filename else store
        closed = described(folder) if error.errno in (errno.EACCES, errno.EPERM) else folder
        return ArtifactError(
            f"{store}: cannot write into the store ({error.strerror}: {error.filename}). Expected a writable folder:"
            f" {closed}. Change its owner or mode, or set `store` in the config."
        )
    return ArtifactError(f"{store}: writing into the store failed ({error}). Check its file system.")


def no_space(folder: Path) -> str:
    """Return the message for a full disk."""
    free = "unknown"
    with contextlib.suppress(OSError):
        free = f"{shutil.disk_usage(folder).free / 2**20:,.0f} MiB"
    return (
        f"{folder}: no space left on the device, or a quota or a limit on file sizes is exhausted (free: {free})."
        " Finished entries are safe. Free some space and run the same command again."
    )


def is_no_space(error: BaseException, folder: Path) -> bool:
    """Whether `error` means that the disk of `folder` is full.

    Some libraries raise errors without an errno: safetensors has the system's words in the message, polars says
    "transport error" and torch "file write failed". For the latter two, the free space of the disk decides.
    """
    if getattr(error, "errno", None) in _FULL or any(words in str(error) for words in _FULL_WORDS):
        return True
    if isinstance(error, DualReadError):
        return False
    try:
        return shutil.disk_usage(folder).free < _NOTHING_FREE
    except OSError:
        return False

"""What the errors of writing mean: a full disk, or a store that cannot be written."""

import contextlib
import errno
import os
import shutil
from pathlib import Path

from dualread.errors import ArtifactError, DualReadError
from dualread.store.shared import described

_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # EFBIG: the limit of `ulimit -f`
_NOTHING_FREE = 2**16  # bytes
_FULL_WORDS = tuple(os.strerror(number) for number in _FULL)


def explained(error: OSError, store: Path) -> ArtifactError:
    """Return the error to raise in place of `error`, which the file system gave while the store was written."""
    if error.errno in _FULL:
        return ArtifactError(no_space(store))
    if error.errno in _UNWRITABLE:
        return ArtifactError(
            f"{store}: cannot write into the store ({error.strerror}: {error.filename})."
            f" Expected a writable folder. Change its owner or mode, or set `store` in the config.{_whose(error)}"
        )
    return ArtifactError(f"{store}: writing into the store failed ({error}). Check its file system.")


def _whose(error: OSError) -> str:
    closed = Path(os.fsdecode(error.filename)).parent if error.filename else None
    return f" {described(closed)}." if closed and error.errno in (errno.EACCES, errno.EPERM) else ""


def no_space(folder: Path) -> str:
    """Return the message for a full disk."""
    with contextlib.suppress(OSError):
        free = shutil.disk_usage(folder).free / 2**20
        return (
            f"{folder}: no space left on the device, or a quota or a limit on file sizes is exhausted"
            f" ({free:,.0f} MiB free). Finished entries are safe. Free some space and run the same command again."
        )
    return f"{folder}: no space left on the device. Free some space and run the same command again."


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

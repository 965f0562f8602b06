"""Small files that several processes read and write: read without waiting for a pipe, replaced as a whole."""

import contextlib
import errno
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any


def plain(path: Path) -> Path:
    """Return `path`, unless it is something that one could wait for without end, such as a pipe.

    Raises:
        OSError: It is no file, or missing.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return path


def read_json(path: Path) -> Any:
    """Return the JSON value that the file `path` holds.

    Raises:
        OSError: It is missing, or cannot be read.
        ValueError: It is not JSON.
    """
    try:
        return json.loads(plain(path).read_bytes())
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def replace_text(path: Path, text: str) -> None:
    """Write `text` to `path`: whoever reads it, at any moment, finds the whole old file or the whole new one.

    Its folder is made if need be; others may read the file whatever the umask.

    Raises:
        OSError: It cannot be written; the old file stands.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise

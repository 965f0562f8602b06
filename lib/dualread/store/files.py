"""Small files that several processes share: reading never blocks on a pipe, and a file is replaced as a whole."""

import contextlib
import errno
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any


def plain(path: Path) -> Path:
    """Return `path` if it is a plain file; reading something else, such as a pipe, could block forever.

    Raises:
        OSError: `path` is missing or not a plain file.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return path


def read_json(path: Path) -> Any:
    """Return the JSON value that the file `path` holds.

    Raises:
        OSError: The file is missing or cannot be read.
        ValueError: The file is not JSON.
    """
    try:
        return json.loads(plain(path).read_bytes())
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def replace_text(path: Path, text: str) -> None:
    """Write `text` to `path` atomically: a reader finds either the whole old file or the whole new one.

    The folder is created if it is missing. The file is readable by others whatever the umask is.

    Raises:
        OSError: The file cannot be written; an old file is left as it is.
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

"""Content digests of files and raw folders; and small files that several processes read and replace.

Reading never blocks on a pipe, and a file is replaced as a whole. A cache spares reading unchanged raw files again.
"""

import contextlib
import errno
import hashlib
import json
import os
import stat
import tempfile
import time
from pathlib import Path
from typing import Any

from dualread.digests import MANIFEST_NAME as MANIFEST_NAME  # named here in stages, whose keys have that
from dualread.digests import digest_of
from dualread.errors import ArtifactError

# A file that changed this recently may change again without a new mtime, so its digest is not cached.
_SETTLED_SECONDS = 2.0


def plain(path: Path) -> Path:
    """Return `path` if it is a plain file; reading something else, such as a pipe, could block forever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return path


def read_json(path: Path) -> Any:
    """Return the JSON value that the file `path` holds."""
    try:
        return json.loads(plain(path).read_bytes())
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the JSON object that the file `path` holds, which is kept for convenience; {} if there is none."""
    try:
        value = read_json(path)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def content(path: Path) -> bytes | None:
    """Return the bytes of `path`; None if it is missing, something else than a plain file, or cannot be read."""
    try:
        return plain(path).read_bytes()
    except OSError:
        return None


def replace_text(path: Path, text: str) -> None:
    """Write `text` to `path` atomically: a reader finds either the whole old file or the whole new one.

    The folder is created if it is missing. The file is readable by others whatever the umask is.
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


def sha256_file(path: Path) -> str:
    """Return the sha256 (hexadecimal) of the bytes of `path`."""
    with plain(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class KeptTable:
    """A table in one JSON file of the store, which may be deleted at any time; without a path, nothing is kept.

    Several processes may replace the file; a row that is lost is computed again. Keys are computed from the rows, so a
    file that is damaged, or was written by another `version` of what computes them, counts as empty.
    """

    def __init__(self, path: Path | None, version: str = "") -> None:
        self._path, self._version = path, version
        self._known: dict[str, Any] | None = None
        self._new: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        """Return a row; None if there is none."""
        if self._known is None:
            self._known = self._read()
        return self._new.get(name, self._known.get(name))

    def keep(self, name: str, row: Any) -> None:
        """Keep a row, until `save` writes it."""
        self._new[name] = row

    def save(self) -> None:
        """Add the new rows to the file; a store that cannot be written is left alone."""
        if not self._new or self._path is None:
            return
        self._known, self._new = {**self._read(), **self._new}, {}
        body = json.dumps({"version": self._version, "table": self._known}, separators=(",", ":"))
        with contextlib.suppress(OSError):
            replace_text(self._path, f"{hashlib.sha256(body.encode()).hexdigest()}\n{body}")

    def _read(self) -> dict[str, Any]:
        if self._path is None:
            return {}
        try:
            digest, _, body = plain(self._path).read_text(encoding="utf-8").partition("\n")
            kept = json.loads(body) if digest == hashlib.sha256(body.encode()).hexdigest() else {}
        except (OSError, ValueError):
            return {}
        return kept["table"] if kept.get("version") == self._version else {}


class StatCache:
    """A cache of the sha256 of raw files by (size, mtime, ctime, inode), in one JSON file of the store."""

    def __init__(self, path: Path) -> None:
        self._kept = KeptTable(path)
        self.save = self._kept.save

    def sha256(self, path: Path) -> str:
        """Return the sha256 of `path`, from the cache if its stat is unchanged."""
        name, before = os.path.abspath(path), _stat_key(path)
        if (row := self._kept.get(name)) and row[:-1] == before:
            return row[-1]
        digest = sha256_file(path)
        changed_ns = max(before[1], before[2])
        if _stat_key(path) == before and time.time() - changed_ns / 1e9 > _SETTLED_SECONDS:
            self._kept.keep(name, [*before, digest])
        return digest


def raw_digest(path: Path, cache: StatCache | None = None) -> str:
    """Return the content digest of a raw file, or of a folder as a table of relative paths and digests.

    Files and folders whose names start with a dot are ignored, because download tools keep times there.
    """
    sha256 = cache.sha256 if cache is not None else sha256_file
    if path.is_file():
        return sha256(path)
    if not path.is_dir():
        raise ArtifactError(f"{path}: no such file or folder. Check the path in the config, or create the input first.")
    table = {}
    for parent, folders, files in os.walk(path, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        visible = (Path(parent, name) for name in files if not name.startswith("."))
        table |= {file.relative_to(path).as_posix(): sha256(file) for file in visible}
    if not table:
        raise ArtifactError(f"{path}: the folder holds no files. Check the path in the config.")
    return digest_of(table)


def _stat_key(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]

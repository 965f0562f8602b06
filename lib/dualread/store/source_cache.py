"""A cache of what `store.source` found in the files of a package, so that the next process need not parse them again.

The cache is one JSON file of the store, which may be deleted at any time.
"""

import contextlib
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from dualread import read_once
from dualread.store import effects, source
from dualread.store.files import plain, replace_text
from dualread.store.source import Definition, Source

# Identifies the parser: another one may find other things in the same text.
_TEXTS = b"".join(read_once.read(Path(str(part.__file__))) for part in (effects, source))
_PARSER = f"{sys.version} {hashlib.sha256(_TEXTS).hexdigest()}"


class SourceCache:
    """The parsed files of one package, by path and digest of the bytes.

    Several processes and checkouts may share the file: each replaces it atomically, and an update that another process
    overwrites only means that a module is parsed again. A file that is damaged, or that another version of Python or of
    the parser wrote, is ignored.

    Args:
        path: The file; None keeps nothing.
        root: The package's folder.
    """

    def __init__(self, path: Path | None, root: Path) -> None:
        self._path, self._root = path, root
        self._known: dict[str, dict[str, Any]] | None = None
        self._new: dict[str, dict[str, Any]] = {}

    def find(self, path: Path, content: bytes) -> Source | None:
        """Return what was found in the file `path` of the package; None if that was in other bytes than `content`."""
        if self._known is None:
            self._known = self._read()
        known = self._known.get(self._name(path))
        if known is None or known["content"] != hashlib.sha256(content).hexdigest():
            return None
        fields = {name: _as_tuple(value) for name, value in known.items()}
        definitions = tuple(Definition(*map(_as_tuple, values)) for values in known["definitions"])
        aliases = {name: tuple(targets) for name, targets in known["aliases"].items()}
        return Source(**{**fields, "definitions": definitions, "aliases": aliases})

    def keep(self, path: Path, found: Source) -> None:
        """Keep what was found in the file `path`."""
        self._new[self._name(path)] = {
            **vars(found),
            "definitions": [list(vars(it).values()) for it in found.definitions],
        }

    def save(self) -> None:
        """Add the newly parsed modules to the file; a store that cannot be written is left alone."""
        if not self._new or self._path is None:
            return
        self._known, self._new = {**self._read(), **self._new}, {}
        body = json.dumps({"parser": _PARSER, "sources": self._known}, separators=(",", ":"))
        with contextlib.suppress(OSError):
            replace_text(self._path, f"{_sha256(body)}\n{body}")

    def _name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    def _read(self) -> dict[str, dict[str, Any]]:
        if self._path is None:
            return {}
        try:
            digest, _, body = plain(self._path).read_text().partition("\n")
            # Keys are computed from these contents, so a truncated or corrupted file must not be accepted.
            cached = json.loads(body) if digest == _sha256(body) else {}
        except (OSError, ValueError):
            return {}
        return cached["sources"] if cached.get("parser") == _PARSER else {}


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

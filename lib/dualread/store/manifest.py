"""MANIFEST.json: an artifact's files and what it was made from. It holds no time or host, so it is deterministic."""

import errno
import json
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from dualread.digests import MANIFEST_NAME, digest_of
from dualread.errors import ArtifactError, ConfigError, DualReadError
from dualread.store.digest import read_json, sha256_file
from dualread.store.key import FIELDS, Action

RECORD_NAME = "RECORD.json"
_FORMAT = 1
# Errors that keep an intact file from being read for the moment.
TEMPORARY = (errno.ESTALE, errno.ETIMEDOUT, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
MACHINE_FAILED = (
    "The machine or its file system failed, or a resource limit was reached. Solve the problem and run the same command"
    " again."
)


class MachineError(DualReadError):
    """The machine or its file system fails at the moment; the data may be intact."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A finished artifact."""

    action: Action  # what made it
    files: Mapping[str, Mapping[str, Any]]  # {relative path: {"sha256", "size"}}
    # {input name: key} of the inputs that are artifacts; for lineage only, not part of the key
    input_keys: Mapping[str, str] = field(default_factory=dict)
    # In a copy of the manifest below results/, the directory that the copy was written for
    place: str | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """The key of the action."""
        return self.action.key

    @cached_property
    def digest(self) -> str:
        """The digest of the files alone: if an upstream change gives the same files, nothing below is recomputed."""
        return digest_of(self.files)

    def to_bytes(self) -> bytes:
        """Return the text of MANIFEST.json."""
        document = {
            "format": _FORMAT,
            "key": self.key,
            **self.action.fields(),
            "input_keys": self.input_keys,
            "files": self.files,
            "digest": self.digest,
            **({} if self.place is None else {"place": self.place}),
        }
        return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()

    def wrong_sizes(self, directory: Path) -> Iterator[str]:
        """Yield one sentence per file under `directory` that is missing or has the wrong size; read no contents."""
        return self._problems(directory, None)

    def wrong_bytes(self, directory: Path, sha256: Callable[[Path], str] = sha256_file) -> Iterator[str]:
        """Yield one sentence per file under `directory` that is missing or has the wrong contents; read all files."""
        return self._problems(directory, sha256)

    def _problems(self, directory: Path, sha256: Callable[[Path], str] | None) -> Iterator[str]:
        for name, expected in self.files.items():
            path, reading = directory / name, False
            try:
                status = path.stat()
                reading = True
                if not stat.S_ISREG(status.st_mode):
                    yield f"{path}: not a plain file"
                elif status.st_size != expected["size"]:
                    yield f"{path}: {status.st_size} bytes, expected {expected['size']}"
                elif sha256 is not None and (actual := sha256(path)) != expected["sha256"]:
                    yield f"{path}: sha256 {actual[:12]}, expected {expected['sha256'][:12]}"
            except OSError as error:
                _raise_if_temporary(path, error)
                yield f"{path}: {'cannot be read' if reading else 'missing'} ({error.strerror})"


def file_table(directory: Path) -> dict[str, dict[str, Any]]:
    """Return the files table of a directory that a stage wrote."""
    table: dict[str, dict[str, Any]] = {}
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise ArtifactError(f"{path}: not a plain file. A stage writes plain files and folders only.")
        if name in (MANIFEST_NAME, RECORD_NAME):
            raise ArtifactError(f"{path}: this name is reserved for the store. The stage has to use another name.")
        if path.is_file():
            table[name] = {"sha256": sha256_file(path), "size": path.stat().st_size}
    if not table:
        raise ArtifactError(f"{directory}: the stage wrote no file. Expected at least one.")
    return table


def read_manifest(path: Path) -> Manifest:
    """Read a MANIFEST.json and check that it is consistent."""
    advice = f"Delete {path} and run the same command again: the artifact is then looked up or recomputed."
    try:
        document = read_json(path)
        manifest = Manifest(
            action=Action(**{name: document[name] for name in FIELDS}),
            files=document["files"],
            input_keys=document["input_keys"],
            place=document.get("place"),
        )
        stated = document["format"], document["key"], document["digest"]
        if agrees := stated == (_FORMAT, manifest.key, manifest.digest):
            _check_types(manifest)
    except OSError as error:
        _raise_if_temporary(path, error)
        raise ArtifactError(f"{path}: cannot be read ({error.strerror}). {advice}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ConfigError) as error:
        raise ArtifactError(f"{path}: not a manifest of format {_FORMAT} ({error!r}). {advice}") from error
    if not agrees:
        raise ArtifactError(f"{path}: the format, key or digest does not match the contents. {advice}")
    return manifest


def _raise_if_temporary(path: Path, error: OSError) -> None:
    if error.errno in TEMPORARY:
        raise MachineError(
            f"{path}: cannot be read at the moment ({error.strerror}); the file may be intact. {MACHINE_FAILED}"
        ) from error


def _check_types(manifest: Manifest) -> None:
    action = manifest.action
    texts = [action.stage, action.code, action.python]
    for mapping in (action.inputs, action.packages, manifest.input_keys):
        texts += [text for item in mapping.items() for text in item]
    for name, row in manifest.files.items():
        texts += [name, row["sha256"]]
        if type(row["size"]) is not int or ".." in name.split("/") or name[:1] in ("", "/"):
            raise ValueError(f"files: {name!r}: {row}, expected a path inside the artifact and a whole number of bytes")
    if not isinstance(action.spec, dict) or not all(isinstance(text, str) for text in texts):
        raise TypeError("a field has the wrong type")


def artifact_directory(path: Path) -> Path | None:
    """Return the directory of the artifact that `path` is, or whose MANIFEST.json it is; None if `path` is raw data."""
    if path.name == MANIFEST_NAME:
        return path.parent
    return path if (path / MANIFEST_NAME).is_file() else None


def beside(path: Path) -> list[str]:
    """Return the existing paths that differ from `path` only in its first missing part, as alternatives to offer."""
    missing = next(part for part in (*reversed(path.parents), path) if not part.exists())
    rest = path.relative_to(missing)
    try:
        return [str(there / rest) for there in missing.parent.iterdir() if (there / rest).exists()]
    except OSError:  # the parent is a file, or may not be listed
        return []

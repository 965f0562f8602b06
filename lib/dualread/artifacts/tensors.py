"""Read and write safetensors files with numpy arrays and a JSON header; never pickle."""

import contextlib
import errno
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from dualread.errors import ArtifactError

_HEADER_KEY = "dualread"  # safetensors headers map strings to strings, so the header is one JSON document


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
    """Write `tensors`, of any shape and memory order, and the JSON object `header` to a safetensors file."""
    # Not np.ascontiguousarray, which would turn a scalar into a vector of length one.
    arrays = {name: np.asarray(array, order="C") for name, array in sorted(tensors.items())}
    save_file(arrays, path, metadata={_HEADER_KEY: json.dumps(header, sort_keys=True)})


@dataclass(frozen=True, kw_only=True)
class TensorFile:
    """A safetensors file that was read: its JSON header, its tensors, and the sha256 of its bytes."""

    path: Path
    header: Mapping[str, Any]
    tensors: Mapping[str, np.ndarray]
    sha256: str


def read_file(path: Path, *, header_bytes: int | None = None, file_bytes: int | None = None) -> TensorFile:
    """Read all of a file that may come from anybody.

    Args:
        path: The file.
        header_bytes: The largest length of its header: JSON takes up to 30 times its length in memory.
        file_bytes: The largest length of all of it. Without these two, any length will do.

    Raises:
        ArtifactError: It is missing, damaged, longer, or no plain file.
    """
    try:
        digest = file_sha256(path)
        with path.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
        if header_bytes is not None and size > header_bytes:
            raise ArtifactError(f"its header has {size:,} bytes, expected at most {header_bytes:,}")
        if file_bytes is not None and (size := path.stat().st_size) > file_bytes:
            raise ArtifactError(f"it has {size:,} bytes, expected at most {file_bytes:,}")
        return TensorFile(path=path, header=read_header(path), tensors=read_tensors(path), sha256=digest)
    except (OSError, ArtifactError) as error:
        raise ArtifactError(f"{path}: cannot be read ({error}). Make it again, or download it again.") from error


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file that may come from anybody; an OSError says that it is missing, or no plain file."""
    if path.exists() and not path.is_file():  # reading a pipe could block forever
        raise OSError(errno.EINVAL, "it is no plain file", str(path))
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_header(path: Path) -> dict[str, Any]:
    """Return the JSON header of a safetensors file without reading any tensor.

    Raises:
        ArtifactError: The file is missing or damaged.
    """
    with _open(path) as file:
        header = json.loads((file.metadata() or {}).get(_HEADER_KEY, "{}"))
        if not isinstance(header, dict):
            raise ValueError(f"its header is {header!r}, expected a mapping")
        return header


def read_tensors(path: Path, names: list[str] | None = None) -> dict[str, np.ndarray]:
    """Return the tensors of a safetensors file, all or those in `names`, as numpy arrays.

    Raises:
        ArtifactError: The file is missing or damaged, or lacks one of `names`.
    """
    with _open(path) as file:
        known = list(file.keys())
        if missing := sorted(set(names or []) - set(known)):
            raise ArtifactError(f"{path}: no tensor {', '.join(missing)}. It holds: {', '.join(sorted(known))}.")
        return {name: file.get_tensor(name) for name in (known if names is None else names)}


@contextlib.contextmanager
def _open(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="numpy") as file:
            yield file
    except (OSError, SafetensorError, ValueError, TypeError, RecursionError) as error:
        raise ArtifactError(
            f"{path}: not a readable safetensors file ({error}). Delete the MANIFEST.json beside it and run again."
        ) from error


def lazy_tensors(path: Path) -> Callable[[str], np.ndarray]:
    """Return a function from a name to the tensor of that name in `path`; each is read on its first use only."""
    return cache(lambda name: read_tensors(path, [name])[name])

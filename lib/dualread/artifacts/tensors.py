"""Read and write safetensors files with numpy arrays and a JSON header; never pickle."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
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

"""Results of batches that a killed job leaves behind, so that the same job goes on after the last of them.

A job that is killed is started again with the same key (`dualread.store.partial`), and so with the same batches: what
comes out has the bytes of a job that nobody killed. Outside of a job, and with a single batch, nothing is kept.
"""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dualread.artifacts.tensors import read_header, read_tensors, write_tensors
from dualread.errors import ArtifactError
from dualread.progress import track
from dualread.store import partial

T = TypeVar("T")


def each_batch(
    batches: Sequence[Sequence[int]], compute: Callable[[Sequence[int]], Sequence[T]], *kinds: type, label: str
) -> Iterator[tuple[Sequence[int], Sequence[T]]]:
    """Yield each batch with its results, which are computed, or read if a killed job has computed them.

    Args:
        batches: The rows of each batch.
        compute: Returns one result per row of a batch.
        kinds: The data classes of which results consist. Their fields hold these, arrays, numbers, texts, None, and
            lists, tuples and mappings of them.
        label: What the batches are, for progress.
    """
    folder = partial.directory() if len(batches) > 1 else None
    for k, batch in enumerate(track(batches, total=len(batches), label=label)):
        file = None if folder is None else folder / f"{k}.safetensors"
        results = None if file is None else _read(file, kinds)
        if results is None or len(results) != len(batch):
            results = compute(batch)
            if file is not None:
                _write(file, results)
        yield batch, results


def in_batches(
    order: Sequence[int], size: int, compute: Callable[[Sequence[int]], Sequence[T]], *kinds: type, label: str
) -> list[T]:
    """Return the result of every row, 0 to n - 1; `order` has all of them, and `size` together are computed at once.

    The batches depend only on the full list, so that a resumed job computes the same ones. See `each_batch`.
    """
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    results: dict[int, T] = {}
    for batch, results_of_batch in each_batch(batches, compute, *kinds, label=label):
        results.update(zip(batch, results_of_batch, strict=True))
    return [results[i] for i in range(len(order))]


def _write(file: Path, results: Sequence[Any]) -> None:
    """Keep results, at once or not at all; a full disk is no reason to stop."""
    arrays: dict[str, np.ndarray] = {}
    packed = [_packed(result, arrays) for result in results]
    with contextlib.suppress(OSError):
        write_tensors(beside := file.with_suffix(".new"), arrays, {"results": packed})
        os.replace(beside, file)


def _read(file: Path, kinds: Sequence[type]) -> list[Any] | None:
    """Return the results of a batch; None if they were not kept, or are damaged."""
    known = {kind.__name__: kind for kind in kinds}
    try:
        arrays = read_tensors(file)
        return [_unpacked(packed, arrays, known) for packed in read_header(file)["results"]]
    except (ArtifactError, LookupError, TypeError, ValueError, AttributeError):
        return None


def _packed(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, np.ndarray):
        arrays[name := str(len(arrays))] = value
        return {"array": name}
    if dataclasses.is_dataclass(value):
        fields = {field.name: _packed(getattr(value, field.name), arrays) for field in dataclasses.fields(value)}
        return {"kind": type(value).__name__, "fields": fields}
    if isinstance(value, Mapping):
        return {"mapping": [[key, _packed(item, arrays)] for key, item in value.items()]}
    if isinstance(value, tuple | list):
        return {type(value).__name__: [_packed(item, arrays) for item in value]}
    return value


def _unpacked(value: Any, arrays: Mapping[str, np.ndarray], known: Mapping[str, type]) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "kind" in value:
        fields = {name: _unpacked(item, arrays, known) for name, item in value["fields"].items()}
        return known[value["kind"]](**fields)
    if "mapping" in value:
        return {key: _unpacked(item, arrays, known) for key, item in value["mapping"]}
    kind = tuple if "tuple" in value else list
    return kind(_unpacked(item, arrays, known) for item in value[kind.__name__])

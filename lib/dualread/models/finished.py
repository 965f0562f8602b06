"""Results of batches are kept in the store, and read where a later job would compute an equal batch.

A batch is equal if all that its computation reads is: code, settings, checkpoint and packages, as in a job's key, and
the content of its rows in their order (`dualread.store.batches`). It is then computed in the same way wherever it
stands, so what comes out has the bytes of a job from nothing: after an edit of some rows, and after a kill, when the
same job goes on after its last batch. Outside of a job nothing is kept.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from PIL.Image import Image

from dualread.artifacts.tensors import read_header, read_tensors, write_tensors
from dualread.data.images import content_sha256
from dualread.errors import ArtifactError
from dualread.models.actor import Request
from dualread.models.images.base import ChangedImage
from dualread.progress import track
from dualread.store import batches as store_batches

T = TypeVar("T")


def in_batches(
    batches: Sequence[Sequence[int]],
    compute: Callable[[Sequence[int]], Sequence[T]],
    *kinds: type,
    rows: Sequence[Sequence[Any]],
    label: str,
) -> list[T]:
    """Return the result of every row, 0 to n - 1: computed, or read if a job has computed an equal batch.

    Args:
        batches: The rows of each batch, which depend only on the full list of rows, so that a resumed job computes the
            same.
        compute: Returns one result per row of a batch.
        kinds: The data classes of which results consist. Their fields hold these, arrays, numbers, texts, None, and
            lists, tuples and mappings of them.
        rows: All that `compute` reads and that differs between rows, each by row: requests, and values for JSON.
        label: What is computed, for progress; other computations of the same job have other labels.
    """
    kept, by_row = store_batches.current(), dict[int, T]()
    for batch in track(batches, total=len(batches), label=label):
        results = compute(batch) if kept is None else _kept(kept, batch, compute, kinds, rows, label)
        by_row |= zip(batch, results, strict=True)
    return [by_row[i] for i in range(len(by_row))]


def parts_of(order: Sequence[int], size: int) -> list[Sequence[int]]:
    """Return rows in parts of `size`; the last one may have fewer."""
    return [order[start : start + size] for start in range(0, len(order), size)]


def _kept(
    kept: Any,
    batch: Sequence[int],
    compute: Callable[[Sequence[int]], Sequence[T]],
    kinds: Sequence[type],
    rows: Sequence[Sequence[Any]],
    label: str,
) -> Sequence[T]:
    """Return the results of a batch, which are kept, or were."""
    kept.names.append(name := kept.name([label, [[_content(values[i]) for values in rows] for i in batch]]))
    file = kept.find(name)
    results = None if file is None else _read(file, kinds)
    if results is not None and len(results) == len(batch):
        kept.n_read += 1
        return results
    computed, arrays = compute(batch), dict[str, np.ndarray]()
    header = {"results": [_packed(result, arrays) for result in computed]}
    kept.keep(name, functools.partial(write_tensors, tensors=arrays, header=header))
    return computed


def _content(value: Any) -> Any:
    """Return what a computation reads of a value, as JSON: of images their content, of a request all."""
    if isinstance(value, Request):
        fields = (getattr(value, field.name) for field in dataclasses.fields(value))
        return [[*map(_content, field)] if isinstance(field, list | tuple) else field for field in fields]
    if isinstance(value, ChangedImage):
        return [content_sha256(value.source), value.content, value.changes, value.draw]
    return content_sha256(value) if isinstance(value, Path | Image) else value


def _read(file: Path, kinds: Sequence[type]) -> list[Any] | None:
    """Return the results of a batch; None if they cannot be read."""
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

"""The files of readers: of a study's results, or of a folder that `dualread export` wrote, a bundle.

A bundle has everything that scoring needs:

bundle.json         what the readers are of, how the actor is asked, the sha256 of each reader; and thresholds
                    of answer sets
readers/            one <method>.safetensors for each method
thresholds.json     the thresholds that were chosen on validation, for each method
metrics.csv         the study's metrics of these methods, in full precision
distances.safetensors  how the states of the validation questions lie, if there are enough (`distance`)
validation.csv      the confidences of the validation answers, without names (`evaluation.statistics.drift`)
README.md           the model card
checkpoint/         the actor, if it was asked for
stored.safetensors  with it: questions about drawn images, and what it answers (`stored`)
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import AfterValidator, Field

from dualread.artifacts.tensors import TensorFile, file_sha256, read_file, write_tensors
from dualread.errors import ArtifactError, ConfigError, did_you_mean
from dualread.evaluation.answer_sets import SetThreshold
from dualread.evaluation.thresholds import Threshold
from dualread.limits import HEADER_BYTES, JSON_BYTES, TENSOR_BYTES
from dualread.schema.base import Name, Section

BUNDLE, METRICS_FILE = "bundle.json", "metrics.csv"
DISTANCES, STORED = "distances.safetensors", "stored.safetensors"
READERS, CHECKPOINT = "readers", "checkpoint"
_THRESHOLDS = "thresholds.json"
_READER = "reader.safetensors"
_AGAIN = "Export the bundle again, or download it again."

T = TypeVar("T", Threshold, SetThreshold)


def _probability(threshold: T) -> T:
    if threshold.value is not None and not 0 <= threshold.value <= 1:
        raise ValueError(f"the threshold {threshold.value} is no probability from 0 to 1")
    return threshold


class Bundle(Section):
    """What bundle.json and thresholds.json say."""

    format: Literal[1]
    study: str
    backbone: str
    actor: str
    seed: int
    method: str
    """The method whose reader gives the confidence."""
    readers: dict[Name, str]
    """The sha256 of each method's reader."""
    scoring: dict[str, Any]
    """What the readers depend on, see `schema.recorded.Requirements`, without views."""
    thresholds: list[Annotated[Threshold, AfterValidator(_probability)]]
    """The thresholds of all methods."""
    answer_sets: list[Annotated[SetThreshold, AfterValidator(_probability)]] = Field(default=[])
    """The thresholds of answer sets; not written where there are none."""


@dataclass(frozen=True, kw_only=True)
class ReaderFiles:
    """The readers of one actor as their files hold them, and what travels with them.

    Errors name `where`. The reader of `method` gives the confidence; `known` are the files of all methods, and `read`
    those of the methods that were chosen. `checkpoint` is the actor, and `distances` and `stored` read the files of
    these names, where they are needed; None for what does not travel along.
    """

    where: str
    method: str
    known: Mapping[str, Path]
    read: Mapping[str, TensorFile]
    thresholds: Sequence[Threshold] = ()
    answer_sets: Sequence[SetThreshold] = ()
    distances: Callable[[], TensorFile] | None = None
    stored: Callable[[], TensorFile] | None = None
    checkpoint: Path | None = None


def read_files(path: Path, methods: Sequence[str] = ()) -> ReaderFiles:
    """Read the reader of a bundle, or a reader's file or folder, and the readers of other `methods` beside it.

    Raises:
        ConfigError: There is no reader of one of the methods.
        ArtifactError: A file is missing or damaged, or a reader is another one than the bundle says.
    """
    travels: dict[str, Any] = {}
    read: dict[str, TensorFile] = {}
    if (path / BUNDLE).is_file():
        bundle, actor = read_bundle(path), path / CHECKPOINT
        method, known = bundle.method, {name: reader_file(path, name) for name in bundle.readers}
        for name, file in known.items():
            try:
                same = file_sha256(file) == bundle.readers[name]
            except OSError as error:
                raise ArtifactError(f"{file}: cannot be read ({error.strerror}). {_AGAIN}") from error
            if not same:
                raise ArtifactError(f"{file}: its sha256 is not the one that {BUNDLE} gives. {_AGAIN}")
        travels = {
            "thresholds": bundle.thresholds,
            "answer_sets": bundle.answer_sets,
            "checkpoint": actor if actor.is_dir() else None,
            **{
                name: partial(read_file, path / file, header_bytes=HEADER_BYTES, file_bytes=TENSOR_BYTES)
                for name, file in {"distances": DISTANCES, "stored": STORED}.items()
                if (path / file).exists()
            },
        }
    else:
        file = path / _READER if path.is_dir() else path
        if not file.exists():
            raise ArtifactError(
                f"{path}: no {_READER} here. Expected a reader's folder such as"
                " results/<study>/readers/<backbone>/<actor>/<seed>/<method>, or one that `dualread export` wrote."
            )
        beside = sorted(file.parent.parent.glob(f"*/{_READER}")) if file.name == _READER else ()
        reader = _read_reader(file)
        provenance = reader.header.get("provenance")
        method = str(provenance.get("method") if isinstance(provenance, Mapping) else None)
        known, read = {**{other.parent.name: other for other in beside}, method: file}, {method: reader}
    read |= {name: _read_reader(known[name]) for name in (method, *methods) if name in known and name not in read}
    if missing := [name for name in (method, *methods) if name not in known]:
        names, meant = ", ".join(sorted(known)), did_you_mean(missing[0], known)
        raise ConfigError(f"{path}: no reader of {missing[0]!r}. Known: {names}.{meant}")
    return ReaderFiles(where=str(path), method=method, known=known, read=read, **travels)


def _read_reader(file: Path) -> TensorFile:
    try:
        return read_file(file, header_bytes=HEADER_BYTES)
    except ArtifactError as error:
        raise ArtifactError(
            f"{error} Expected the reader.safetensors that stage fit_readers writes, or one of a folder that `dualread"
            " export` wrote."
        ) from error


def read_bundle(folder: Path) -> Bundle:
    """Read what `write_bundle` wrote; an ArtifactError says what is missing, damaged or of another format."""
    try:
        known, thresholds = (_json(folder / name) for name in (BUNDLE, _THRESHOLDS))
        return Bundle.from_spec({**known, "thresholds": thresholds}, BUNDLE)
    except (OSError, ValueError, TypeError, RecursionError, ConfigError) as error:
        raise ArtifactError(f"{folder}: {BUNDLE} or {_THRESHOLDS} cannot be read ({error!r}). {_AGAIN}") from error


def _json(file: Path) -> Any:
    if (size := file.stat().st_size) > JSON_BYTES:
        raise ValueError(f"{file.name} has {size:,} bytes, expected at most {JSON_BYTES:,}")
    if not file.is_file():
        raise ValueError(f"{file.name} is no plain file")  # reading a pipe could block forever
    return json.loads(file.read_bytes())


def write_bundle(folder: Path, bundle: Bundle) -> None:
    """Write bundle.json and thresholds.json."""
    known = bundle.model_dump(exclude_defaults=True)
    for name, value in ((_THRESHOLDS, known.pop("thresholds")), (BUNDLE, known)):
        text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        (folder / name).write_text(text, encoding="utf-8")


def write_shared(file: Path, tensors: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
    """Write a file of a bundle that whoever reads the others may read; safetensors writes for its owner alone."""
    file.touch()
    mode = file.stat().st_mode
    write_tensors(file, tensors, header)
    file.chmod(mode)


def reader_file(folder: Path, method: str) -> Path:
    """Return the file of a method's reader in a bundle."""
    return folder / READERS / f"{method}.safetensors"

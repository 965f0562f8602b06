"""Where readers and actors lie: a file, a study's results, a folder that `dualread export` wrote, or the hub.

An exported folder, a bundle, has everything that scoring needs:

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
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import AfterValidator, Field

from dualread.artifacts.tensors import write_tensors
from dualread.errors import ArtifactError, ConfigError, did_you_mean
from dualread.evaluation.answer_sets import SetThreshold
from dualread.evaluation.thresholds import Threshold
from dualread.limits import HEADER_BYTES, JSON_BYTES, check_size
from dualread.models.adapters import is_adapter
from dualread.models.backbones.checkpoint import download
from dualread.readers.artifact import load_reader
from dualread.readers.base import FittedReader
from dualread.readers.declarations import declared
from dualread.readers.requirements import ScoringReader
from dualread.schema.base import Name, Section
from dualread.store.digest import plain, read_json, sha256_file

CHECKPOINT = "checkpoint"
METRICS_FILE = "metrics.csv"
READERS = "readers"
_BUNDLE, _THRESHOLDS = "bundle.json", "thresholds.json"
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


def is_bundle(path: Path) -> bool:
    """Return whether `path` is a folder with a bundle.json."""
    return (path / _BUNDLE).is_file()


def read_bundle(folder: Path) -> Bundle:
    """Read what `write_bundle` wrote; an ArtifactError says what is missing, damaged or of another format."""
    try:
        files = [check_size(folder / name, JSON_BYTES) for name in (_BUNDLE, _THRESHOLDS)]
        known, thresholds = map(read_json, files)
        return Bundle.from_spec({**known, "thresholds": thresholds}, _BUNDLE)
    except (OSError, ValueError, TypeError, RecursionError, ConfigError) as error:
        raise ArtifactError(f"{folder}: {_BUNDLE} or {_THRESHOLDS} cannot be read ({error!r}). {_AGAIN}") from error


def copy_readers(files: Mapping[str, Path], folder: Path) -> dict[str, str]:
    """Copy the file of each method's reader into `folder`; return the sha256 of each."""
    (folder / READERS).mkdir(parents=True, exist_ok=True)
    copies = {method: shutil.copyfile(file, _reader_file(folder, method)) for method, file in files.items()}
    return {method: sha256_file(copy) for method, copy in copies.items()}


def write_bundle(folder: Path, bundle: Bundle) -> None:
    """Write bundle.json and thresholds.json."""
    known = bundle.model_dump(exclude_defaults=True)
    for name, value in ((_THRESHOLDS, known.pop("thresholds")), (_BUNDLE, known)):
        text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        (folder / name).write_text(text, encoding="utf-8")


def write_shared(file: Path, tensors: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
    """Write a file of a bundle that whoever reads the others may read; safetensors writes for its owner alone."""
    file.touch()
    mode = file.stat().st_mode
    write_tensors(file, tensors, header)
    file.chmod(mode)


def _reader_file(folder: Path, method: str) -> Path:
    return folder / READERS / f"{method}.safetensors"


_READER = "reader.safetensors"
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_AT_REVISION = re.compile(r"([\w.-]+/[\w.-]+)@([\w./-]+)")


@dataclass(frozen=True, kw_only=True)
class ReaderSource:
    """Where the readers of one actor are: the files, by method, and what travels with them.

    Errors name `where`. The reader of `method` gives the confidence. `checkpoint` is the actor, or None if it does not
    travel along, and `bundle` the exported folder, or None for a bare reader. The files may name plugins of the
    packages `plugins`, because the user has named these.
    """

    where: str
    method: str
    files: Mapping[str, Path]
    thresholds: Sequence[Threshold] = ()
    answer_sets: Sequence[SetThreshold] = ()
    checkpoint: Path | None = None
    bundle: Path | None = None
    plugins: Sequence[str] = ()

    def scoring_reader(self, method: str) -> ScoringReader:
        """Read the reader of `method`, with what it needs of an actor that is asked new questions.

        Raises:
            ConfigError: There is none, or it was fitted on given answers.
            UntrustedNameError: The file names a plugin of a package that the user has not named.
            ArtifactError: The file is no reader, does not say what it needs, or says why it cannot score.
        """
        if method not in self.files:
            known = ", ".join(sorted(self.files))
            raise ConfigError(
                f"{self.where}: no reader of {method!r}. Known: {known}.{did_you_mean(method, self.files)}"
            )
        fitted = read_reader(self.files[method], self.plugins)
        reader = ScoringReader.from_fitted(fitted, where=str(self.files[method]), packages=self.plugins)
        if reader.unfitted is not None:
            raise ArtifactError(
                f"{self.where}: {method} could not be fitted, so that it cannot score: {reader.unfitted}"
            )
        if declared(reader.module, "SCORES_UNFITTED") and not reader.weights.notes:
            raise ArtifactError(
                f"{self.where}: {method} is not calibrated: it gives scores, and no confidences. Fit it in the study."
            )
        if grouping := [view.name for view in reader.views if view.groups is not None]:
            raise ArtifactError(
                f"{self.where}: {method} groups answers by meaning (view {grouping[0]}), for which only a study and"
                " `dualread.confidences` open a model. Choose another method, or the same one without that view."
            )
        if not reader.requirements.checkpoint:
            raise ConfigError(
                f"{self.where}: was fitted on given answers, and there is no checkpoint that could answer. Expected a"
                " reader of an actor with a checkpoint; `dualread evaluate` judges given answers."
            )
        return reader


def find(
    reader: str | Path, *, revision: str | None = None, with_checkpoint: bool = True, plugins: str | Sequence[str] = ()
) -> ReaderSource:
    """Return the readers that `reader` names, see `scorer.Scorer.load`; of a repository, perhaps `with_checkpoint`.

    Raises:
        ConfigError: A `revision` of something that is not on the hub.
        ArtifactError: There is no such reader.
    """
    path, plugins = Path(reader), [plugins] if isinstance(plugins, str) else list(plugins)
    if not path.exists():
        if not isinstance(reader, str) or not _REPOSITORY.fullmatch(reader):
            raise ArtifactError(
                f"{reader}: no such file or folder. Expected a reader.safetensors, a folder that `dualread export`"
                " wrote, or the id of a repository of the hub such as owner/name."
            )
        path = download(reader, revision, left_out=() if with_checkpoint else [f"{CHECKPOINT}/*"])
    elif revision is not None:
        raise ConfigError(f"{reader}: revision {revision!r} of a local path. Give a revision only of a hub repository.")
    if is_bundle(path):
        return _exported(path, plugins)
    file = path / _READER if path.is_dir() else path
    if not file.is_file():
        raise ArtifactError(
            f"{path}: no {_READER} here. Expected a reader's folder such as"
            " results/<study>/readers/<backbone>/<actor>/<seed>/<method>, or one that `dualread export` wrote."
        )
    method = str(read_reader(file, plugins).provenance.get("method"))
    beside = {reader_file.parent.name: reader_file for reader_file in sorted(file.parent.parent.glob(f"*/{_READER}"))}
    return ReaderSource(
        where=str(reader),
        method=method,
        files={**(beside if file.name == _READER else {}), method: file},
        plugins=plugins,
    )


def _exported(folder: Path, plugins: Sequence[str]) -> ReaderSource:
    """Return what a folder that `dualread export` wrote holds; the digests of its readers are checked."""
    bundle, actor = read_bundle(folder), folder / CHECKPOINT
    files = {method: _reader_file(folder, method) for method in bundle.readers}
    for method, file in files.items():
        try:
            same = sha256_file(file) == bundle.readers[method]
        except OSError as error:
            raise ArtifactError(f"{file}: cannot be read ({error.strerror}). {_AGAIN}") from error
        if not same:
            raise ArtifactError(f"{file}: its sha256 is not the one that {_BUNDLE} gives. {_AGAIN}")
    return ReaderSource(
        where=str(folder),
        method=bundle.method,
        files=files,
        thresholds=bundle.thresholds,
        answer_sets=bundle.answer_sets,
        checkpoint=actor if actor.is_dir() else None,
        bundle=folder,
        plugins=plugins,
    )


def read_reader(file: Path, plugins: Sequence[str] = ()) -> FittedReader:
    """Read a reader that stage fit_readers wrote, here or elsewhere; `plugins` is as in `scorer.Scorer.load`.

    Raises:
        ArtifactError: The file is no reader, is damaged, or has weights that are not finite.
    """
    try:
        return load_reader(check_size(plain(file), HEADER_BYTES, header=True), plugins=plugins)
    except (OSError, ArtifactError, ConfigError, AttributeError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"{file}: not a reader ({error}). Expected the reader.safetensors that stage fit_readers writes, or one of"
            " a folder that `dualread export` wrote."
        ) from error


def find_checkpoint(checkpoint: str | Path) -> Path:
    """Return the folder of a checkpoint: that of an actor, its own, or "owner/name@revision", a repository of the hub.

    Raises:
        ArtifactError: There is no such folder with a model, or no such repository.
    """
    named = _AT_REVISION.fullmatch(str(checkpoint))
    if named is None or Path(checkpoint).exists():
        return checkpoint_folder(Path(checkpoint))
    return checkpoint_folder(download(*named.groups()))


def checkpoint_folder(checkpoint: Path) -> Path:
    """Return the folder with the weights: `checkpoint` itself, or its subfolder of this name if it is an actor's.

    It may be that of an adapter, without its base. An ArtifactError says that there is no model in it.
    """
    for folder in (checkpoint / "checkpoint", checkpoint):
        if (folder / "config.json").is_file() or is_adapter(folder):
            return folder
    raise ArtifactError(
        f"{checkpoint}: no config.json here. Expected the folder of a checkpoint, of an actor such as"
        " results/<study>/actors/<backbone>/<actor>/<seed>, or a repository of the hub as owner/name@revision."
    )

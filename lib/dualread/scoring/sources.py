"""Find readers: in a file, in a study's results, in a folder that `dualread export` wrote, or on the hub."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dualread.errors import ArtifactError, ConfigError, did_you_mean
from dualread.models.backbones.checkpoint import download
from dualread.readers.artifact import load_reader
from dualread.readers.base import FittedReader
from dualread.scoring import agreement
from dualread.scoring.bundle import CHECKPOINT, is_bundle, read_bundle
from dualread.scoring.thresholds import Threshold

_READER = "reader.safetensors"
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_AT_REVISION = re.compile(r"([\w.-]+/[\w.-]+)@([\w./-]+)")


@dataclass(frozen=True, kw_only=True)
class Source:
    """Readers of one actor.

    Attributes:
        where: What errors name.
        method: The method whose reader gives the confidence.
        files: The readers' files by method.
        thresholds: The thresholds that travel with the readers; none with a bare file.
        checkpoint: The actor, where it travels with the readers.
    """

    where: str
    method: str
    files: Mapping[str, Path]
    thresholds: Sequence[Threshold] = ()
    checkpoint: Path | None = None

    def load(self, method: str) -> FittedReader:
        """Read the reader of `method`.

        Raises:
            ConfigError: There is none; the message lists the others.
            ArtifactError: The file is no reader, is damaged, or says why the reader could not be fitted.
        """
        if method not in self.files:
            known = ", ".join(sorted(self.files))
            raise ConfigError(
                f"{self.where}: no reader of {method!r}. Known: {known}.{did_you_mean(method, self.files)}"
            )
        reader = read_reader(self.files[method])
        if reader.unfitted is not None:
            raise ArtifactError(
                f"{self.where}: {method} could not be fitted, so that it cannot score: {reader.unfitted}"
            )
        return reader


def find(reader: str | Path, *, revision: str | None = None, with_checkpoint: bool = True) -> Source:
    """Return the readers that `reader` names.

    Args:
        reader: A reader.safetensors or its folder, as in results/<study>/readers/<backbone>/<actor>/<seed>/<method>;
            a folder that `dualread export` wrote; or the id of a repository of the hub with such a folder.
        revision: The commit, tag or branch of the repository.
        with_checkpoint: Whether to download the actor, too, if the repository has it.

    Raises:
        ConfigError: A `revision` of something that is not on the hub.
        ArtifactError: There is no such reader.
    """
    path = Path(reader)
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
        return _of_bundle(path)
    file = path / _READER if path.is_dir() else path
    if not file.is_file():
        raise ArtifactError(
            f"{path}: no {_READER} here. Expected a reader's folder such as"
            " results/<study>/readers/<backbone>/<actor>/<seed>/<method>, or one that `dualread export` wrote."
        )
    method = str(read_reader(file).provenance.get("method"))
    beside = {one.parent.name: one for one in sorted(file.parent.parent.glob(f"*/{_READER}"))}
    return Source(where=str(reader), method=method, files={**(beside if file.name == _READER else {}), method: file})


def read_reader(file: Path) -> FittedReader:
    """Read a reader that stage fit_readers wrote.

    Raises:
        ArtifactError: The file is no reader, is damaged, or has weights that are not finite.
    """
    try:
        reader = load_reader(file)
        if not isinstance(reader.provenance, Mapping):
            raise TypeError(f"its provenance is {reader.provenance!r}")
        return reader
    except (ArtifactError, ConfigError, AttributeError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"{file}: not a reader ({error}). Expected the reader.safetensors that stage fit_readers writes, or one of"
            " a folder that `dualread export` wrote."
        ) from error


def _of_bundle(folder: Path) -> Source:
    bundle = read_bundle(folder)
    own = folder / CHECKPOINT
    return Source(
        where=str(folder),
        method=bundle.method,
        files=bundle.files(folder),
        thresholds=bundle.thresholds,
        checkpoint=own if own.is_dir() else None,
    )


def find_checkpoint(checkpoint: str | Path) -> Path:
    """Return the folder of the checkpoint that `checkpoint` names.

    Args:
        checkpoint: The folder of a checkpoint or of an actor; or "owner/name@revision", a repository of the hub.

    Raises:
        ArtifactError: There is no such folder with a model, or no such repository.
    """
    given = _AT_REVISION.fullmatch(str(checkpoint))
    if given is None or Path(checkpoint).exists():
        return agreement.checkpoint_folder(Path(checkpoint))
    return agreement.checkpoint_folder(download(*given.groups()))

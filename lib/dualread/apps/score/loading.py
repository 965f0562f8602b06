"""Load readers and their actor, and refuse an actor or a prompt that the readers were not fitted on.

What a reader was fitted on is compared with what it is used on now, and every difference is named.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from dualread import plugins
from dualread.apps.score import ScorerChoice
from dualread.apps.score.answering import ActorNeeds
from dualread.apps.score.bundle import CHECKPOINT, ReaderFiles, read_files
from dualread.apps.score.distance import StateDistances
from dualread.apps.score.readings import LoadedReaders
from dualread.digests import digest_of
from dualread.errors import ArtifactError, ConfigError
from dualread.evaluation.thresholds import Threshold, deciding
from dualread.models import prompts
from dualread.models.adapters import is_adapter, merge
from dualread.models.backbones.checkpoint import download
from dualread.models.backbones.encode import Encoder
from dualread.models.backbones.tokenizer import CALLED, without_calls
from dualread.models.replay.forward import middle_layer
from dualread.models.replay.rules import read_of_example, rules
from dualread.readers.artifact import fitted_reader
from dualread.readers.requirements import ScoringReader
from dualread.schema.recorded import Requirements
from dualread.store.digest import sha256_file

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_AT_REVISION = re.compile(r"([\w.-]+/[\w.-]+)@([\w./-]+)")
_MERGED = "dualread-merged-"  # the beginning of the name of a folder for temporary files
_SECONDS_TO_LOCK = 60.0  # a folder that is younger may be one that its process has not locked yet
# Files of a checkpoint that a model or its tokenizer may be read from; others, such as README.md, change nothing.
_READ = (".json", ".jinja", ".safetensors", ".model", ".txt")


def checkpoint_digests(folder: Path) -> dict[str, str]:
    """Return the sha256 of each file of a checkpoint by name; files that no model is read from are left out.

    Of the tokenizer's files, it is that of what is read: an actor of a study is a copy without what they keep of calls.
    """
    return {
        path.name: hashlib.sha256(without_calls(path.name, path.read_bytes())).hexdigest()
        if path.name in CALLED
        else sha256_file(path)
        for path in sorted(folder.iterdir())
        if path.suffix in _READ and path.is_file()
    }


def other_checkpoint(required: Mapping[str, str], digests: Mapping[str, str]) -> Iterator[str]:
    """Yield one sentence for each file of a checkpoint that is not as it was when the reader was fitted."""
    for name in sorted(required.keys() | {name for name in digests if Path(name).suffix in _READ}):
        if name not in digests:
            yield f"{name} is missing"
        elif name not in required:
            yield f"{name} is new"
        elif required[name] != digests[name]:
            yield f"{name} has sha256 {digests[name][:12]}, expected {required[name][:12]}"


def other_prompts(required: Sequence[Requirements], prompt: str | None) -> Iterator[str]:
    """Yield one sentence if another `prompt` is chosen, and for each prompt whose text is no longer the fitted one.

    `required` is what the readers depend on; the prompt of the first one is that of the question.
    """
    expected = required[0].prompt.name
    if prompt not in (None, expected):
        yield f"the prompt is {prompt!r}, expected {expected!r}"
    for asked in dict.fromkeys(
        fitted for needs in required for fitted in (needs.prompt, *(view.prompt for view in needs.views))
    ):
        if (sha256 := prompts.template_sha256(asked.name)) != asked.sha256:
            yield f"the prompt {asked.name!r} has sha256 {sha256[:12]}, expected {asked.sha256[:12]}"


def other_states(reader: ScoringReader, config: Any) -> Iterator[str]:
    """Yield one sentence for each way in which states are read now and were not when the reader was fitted.

    `config` is the configuration of the model's text part.
    """
    if (states := reader.states) is None:
        return
    n_layers, required = config.num_hidden_layers, reader.requirements
    thinking_ends = plugins.declared("contracts", required.contract, "THINKING_ENDS")
    positions = rules(thinking_ends, of_claims=required.spans is not None)
    now = {"final_layer": n_layers, "middle_layer": middle_layer(n_layers), "positions": positions}
    for name, value in now.items():
        if (fitted := getattr(states, name)) != value:
            yield f"{name} is {value!r}, expected {fitted!r}"
    for name, values in read_of_example(thinking_ends).items():
        if name in reader.features and values != (fitted := (states.example or {}).get(name)):
            yield f"{name} of the replay's example is {values}, expected {fitted}"


class OpenedActor(Protocol):
    """An opened checkpoint; `config` is the configuration of its text part."""

    encoder: Encoder
    config: Any


A = TypeVar("A", bound=OpenedActor)
# Opens a checkpoint as its readers need it: from its folder, and what they need.
Opens = Callable[[Path, ActorNeeds], A]


@dataclass(frozen=True, kw_only=True)
class LoadedScorer(Generic[A]):
    """What scoring needs: an actor, what readers need of it, and the readers.

    `notes` say what differs from what the readers were fitted on; they are empty unless others were allowed. `digest`
    is of all that a result depends on besides the question.
    """

    actor: A
    needs: ActorNeeds
    readers: LoadedReaders
    notes: tuple[str, ...]
    digest: str

    @property
    def known_early(self) -> bool:
        """Whether claims can be judged while their report goes on."""
        return self.needs.divider is not None and self.readers.known_early(self.actor.config.hidden_size)


@dataclass(frozen=True, kw_only=True)
class ChosenReaders:
    """The readers that are chosen, by method, with their files; `needs` is what all of them need of their actor."""

    choice: ScorerChoice
    files: ReaderFiles
    by_method: Mapping[str, ScoringReader]
    needs: ActorNeeds

    @classmethod
    def load(cls, choice: ScorerChoice) -> "ChosenReaders":
        """Read them; errors are those of `scorer.Scorer.load`."""
        place, packages = _located(choice), [choice.plugins] if isinstance(choice.plugins, str) else choice.plugins
        files = read_files(place, choice.methods)
        by_method = {}
        for method in dict.fromkeys((files.method, *choice.methods)):
            fitted = fitted_reader(files.read[method], packages)
            by_method[method] = reader = ScoringReader.from_fitted(
                fitted, where=str(files.read[method].path), packages=packages
            )
            grouping = next((view.name for view in reader.views if view.groups is not None), None)
            if reader.unfitted is not None:
                problem = f"could not be fitted, so that it cannot score: {reader.unfitted}"
            elif not reader.is_calibrated:
                problem = "is not calibrated: it gives scores, and no confidences. Fit it in the study."
            elif grouping is not None:
                problem = (
                    f"groups answers by meaning (view {grouping}), for which only a study and `dualread.confidences`"
                    " open a model. Choose another method, or the same one without that view."
                )
            elif not reader.requirements.checkpoint:
                raise ConfigError(
                    f"{files.where}: {method} was fitted on given answers, and there is no checkpoint that could"
                    " answer. Expected a reader of an actor with a checkpoint; `dualread evaluate` judges given"
                    " answers."
                )
            else:
                continue
            raise ArtifactError(f"{files.where}: {method} {problem}")
        needs = ActorNeeds.from_readers(by_method, files.where, choice.prompt)
        return cls(choice=choice, files=files, by_method=by_method, needs=needs)

    @property
    def threshold(self) -> Threshold | None:
        """The threshold of the method that gives the confidence; a ConfigError says that none is as it was chosen."""
        return self._threshold(self.files.method)

    @property
    def psr_threshold(self) -> Threshold | None:
        """The threshold of the method psr, before there is an answer; errors are those of `threshold`."""
        return self._threshold("psr")

    def _threshold(self, method: str) -> Threshold | None:
        of_method = [threshold for threshold in self.files.thresholds if threshold.method == method]
        return deciding(of_method, self.choice.target_risk_percent, certified=self.choice.certified)

    def with_actor(self, opens: Opens[A]) -> LoadedScorer[A]:
        """Open their actor by `opens`, if all that is known without it fits; errors are those of `Scorer.load`."""
        files, by_method, needs = self.files, self.by_method, self.needs
        threshold = self.threshold
        set_thresholds = [candidate for candidate in files.answer_sets if candidate.method in by_method]
        for candidate in set_thresholds:
            if by_method[candidate.method].choices_view is None:
                raise ArtifactError(
                    f"{files.where}: has a threshold of answer sets of {candidate.method}, which reads no probabilities"
                    " of choices. Export the bundle again."
                )
        with self._checkpoint() as folder:
            digests = checkpoint_digests(folder)
            required = [fitted for reader in by_method.values() for fitted in reader.needs]
            notes = [f"checkpoint: {note}" for note in other_checkpoint(required[0].checkpoint, digests)]
            notes += other_prompts(required, self.choice.prompt)
            self._refuse(notes, folder, "Give the actor and the prompt that it was fitted on.")
            actor = opens(folder, needs)
        of_states = dict.fromkeys(note for reader in by_method.values() for note in other_states(reader, actor.config))
        self._refuse([*of_states], folder, "States are read in another way now: fit it again.")
        width = actor.config.hidden_size
        distances = StateDistances.from_file(files.distances(), width) if files.distances and needs.features else None
        readers = LoadedReaders(
            by_method=by_method,
            method=files.method,
            threshold=threshold,
            set_thresholds=set_thresholds,
            distances=distances,
        )
        readers.check_widths(width)
        depends_on = [
            {method: files.read[method].sha256 for method in by_method},
            *(files.method, digests, needs.requirements.prompt.model_dump()),
            None if threshold is None else asdict(threshold),
            *([] if distances is None else [distances.distances.tolist()]),
            *map(asdict, set_thresholds),
        ]
        return LoadedScorer(
            actor=actor,
            needs=needs,
            readers=readers,
            notes=(*notes, *of_states),
            digest=digest_of(depends_on),
        )

    @contextlib.contextmanager
    def _checkpoint(self) -> Iterator[Path]:
        """Yield the folder of the actor; an adapter is merged into its base for as long as it takes to load it."""
        base, checkpoint = self.choice.base, self.choice.checkpoint
        if (named := self.files.checkpoint if checkpoint is None else checkpoint) is None:
            raise ConfigError(
                f"{self.files.where}: no actor travels with this reader. Give the checkpoint of its actor"
                " (--checkpoint), such as results/<study>/actors/<backbone>/<actor>/<seed>."
            )
        folder = _find_checkpoint(named)
        if is_adapter(folder) != (base is not None):
            actual = "an adapter without a base" if base is None else f"a whole model, and a base, {base}"
            raise ConfigError(
                f"{folder}: {actual}. Expected a whole model, or an adapter and its base. Give the folder or"
                " owner/name@revision of the adapter (--checkpoint) and of its base (--base), or of the whole model"
                " alone."
            )
        if base is None:
            yield folder
            return
        with _temporary_folder() as merged:
            merge(folder, _find_checkpoint(base), merged, self.needs.requirements.model)
            yield merged

    def _refuse(self, notes: Sequence[str], folder: Path, advice: str) -> None:
        if notes and not self.choice.allow_other:
            raise ArtifactError(
                f"{self.files.where}: not what the reader was fitted on: {'; '.join(notes)} (checkpoint {folder})."
                f" {advice} To score nevertheless, allow others (--allow-other, in Python allow_other=True); every"
                " result will say so."
            )


def _located(choice: ScorerChoice) -> Path:
    """Return the file or the folder of the readers, which is downloaded if it is on the hub."""
    path, revision = Path(choice.reader), choice.revision
    if path.exists():
        if revision is not None:
            raise ConfigError(
                f"{path}: revision {revision!r} of a local path. Give a revision only of a hub repository."
            )
        return path
    if not isinstance(choice.reader, str) or not _REPOSITORY.fullmatch(choice.reader):
        raise ArtifactError(
            f"{choice.reader}: no such file or folder. Expected a reader.safetensors, a folder that `dualread export`"
            " wrote, or the id of a repository of the hub such as owner/name."
        )
    return download(choice.reader, revision, left_out=() if choice.checkpoint is None else [f"{CHECKPOINT}/*"])


def _find_checkpoint(checkpoint: str | Path) -> Path:
    """Return the folder of a checkpoint: that of an actor, its own, or that of "owner/name@revision" on the hub."""
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


@contextlib.contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Provide a folder for a merged model, and remove it afterwards; and first, those of processes that were killed."""
    # The kernel releases the lock on a folder when its process ends, however it ends.
    for leftover in Path(tempfile.gettempdir()).glob(f"{_MERGED}*"):
        with contextlib.suppress(OSError), _locked(leftover) as status:
            if time.time() - status.st_mtime > _SECONDS_TO_LOCK:
                shutil.rmtree(leftover)
    with tempfile.TemporaryDirectory(prefix=_MERGED) as folder, _locked(Path(folder)):
        yield Path(folder)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[os.stat_result]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield os.fstat(descriptor)
    finally:
        os.close(descriptor)

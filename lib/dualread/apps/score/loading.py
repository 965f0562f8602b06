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
from dualread.apps.score import ScorerChoice, distance
from dualread.apps.score.answer_sets import check_sets
from dualread.apps.score.bundle import ReaderSource, check_is_own, find, find_checkpoint
from dualread.apps.score.claims import check_claims
from dualread.apps.score.distance import StateDistances
from dualread.apps.score.readings import check_widths, features_of
from dualread.digests import digest_of
from dualread.errors import ArtifactError, ConfigError, did_you_mean
from dualread.evaluation.answer_sets import SetThreshold
from dualread.evaluation.thresholds import Threshold, deciding
from dualread.models import prompts
from dualread.models.adapters import is_adapter, merge
from dualread.models.backbones.encode import Encoder
from dualread.models.backbones.tokenizer import CALLED, without_calls
from dualread.models.replay.forward import middle_layer
from dualread.models.replay.rules import read_of_example, rules
from dualread.readers.base import FittedReader
from dualread.readers.requirements import all_requirements, requirements_of, states_of, views_read
from dualread.schema.base import Wire
from dualread.schema.recorded import PromptText, RequiredView, Requirements
from dualread.store.digest import sha256_file

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

    Args:
        required: What the readers depend on, at least one; the first one's prompt is that of the question.
        prompt: The prompt that is chosen in its place; None for none.

    Raises:
        ConfigError: The library has no prompt of this name.
    """
    known = [name for name in prompts.names() if not re.search(r"\{(ANSWER|HINT|OPTION_TEXT)", prompts.template(name))]
    if prompt is not None and prompt not in (*known, required[0].prompt.name):
        meant = did_you_mean(prompt, known)
        raise ConfigError(f"prompt {prompt!r}: no prompt for a question alone. Known: {', '.join(known)}.{meant}")
    expected = required[0].prompt.name
    if prompt not in (None, expected):
        yield f"the prompt is {prompt!r}, expected {expected!r}"
    for asked in dict.fromkeys(
        fitted for needs in required for fitted in (needs.prompt, *(view.prompt for view in needs.views))
    ):
        if (sha256 := prompts.template_sha256(asked.name)) != asked.sha256:
            yield f"the prompt {asked.name!r} has sha256 {sha256[:12]}, expected {asked.sha256[:12]}"


def other_states(reader: FittedReader, config: Any) -> Iterator[str]:
    """Yield one sentence for each way in which states are read now and were not when the reader was fitted.

    Args:
        reader: A fitted reader.
        config: The configuration of the model's text part.
    """
    if (states := states_of(reader, where=str(reader.provenance.get("method")))) is None:
        return
    features = features_of(reader)
    n_layers, required = config.num_hidden_layers, requirements_of(reader, where="")
    thinking_ends = plugins.declared("contracts", required.contract, "THINKING_ENDS")
    positions = rules(thinking_ends, of_claims=required.spans is not None)
    now = {"final_layer": n_layers, "middle_layer": middle_layer(n_layers), "positions": positions}
    for name, value in now.items():
        if (fitted := getattr(states, name)) != value:
            yield f"{name} is {value!r}, expected {fitted!r}"
    for name, values in read_of_example(thinking_ends).items():
        if name in features and values != (fitted := (states.example or {}).get(name)):
            yield f"{name} of the replay's example is {values}, expected {fitted}"


class OpenedActor(Protocol):
    """An opened checkpoint; `config` is the configuration of its text part."""

    encoder: Encoder
    config: Any


A = TypeVar("A", bound=OpenedActor)
# Opens a checkpoint as its readers require: its folder, their requirements without views, and kappa of their states.
Opens = Callable[[Path, Requirements, float | None], A]


@dataclass(frozen=True, kw_only=True)
class LoadedScorer(Generic[A]):
    """What scoring needs.

    Attributes:
        requirements: How the actor has to be asked, without views.
        readers: The readers by method.
        method: The method whose reader gives the confidence.
        views: The views that any of the readers reads.
        threshold: The threshold that decides; None if none travels with the reader.
        thresholds: All that travel with the reader, of all methods.
        notes: What differs from what the readers were fitted on; empty unless others were allowed.
        digest: Digest of all that a result depends on besides the question.
        bundle: The exported folder; None for a bare reader.
        distances: What validation states were like; None where that does not travel with the readers of states.
        set_thresholds: Those of answer sets that travel with the readers.
    """

    actor: A
    requirements: Requirements
    readers: Mapping[str, FittedReader]
    method: str
    views: Sequence[RequiredView]
    threshold: Threshold | None
    thresholds: Sequence[Threshold]
    notes: tuple[str, ...]
    digest: str
    bundle: Path | None = None
    distances: StateDistances | None = None
    set_thresholds: Sequence[SetThreshold] = ()

    @property
    def reads_states(self) -> bool:
        """Whether any of the readers reads hidden states."""
        return bool(features_of(*self.readers.values()))


def load(choice: ScorerChoice, opens: Opens[A]) -> LoadedScorer[A]:
    """Load what is chosen; `opens` opens the checkpoint when all that is known without it fits.

    Raises:
        ConfigError, ArtifactError: See `scorer.Scorer.load`.
    """
    source = find(
        choice.reader, revision=choice.revision, with_checkpoint=choice.checkpoint is None, plugins=choice.plugins
    )
    readers = {name: source.load(name) for name in dict.fromkeys((source.method, *choice.methods))}
    required = {name: requirements_of(reader, where=source.where) for name, reader in readers.items()}
    for needs in required.values():
        check_is_own(needs, source.where)
    states = [needed for reader in readers.values() if (needed := states_of(reader, where=source.where))]
    set_thresholds = [candidate for candidate in source.answer_sets if candidate.method in readers]
    check_sets(readers, set_thresholds, source.where)
    of_method = [candidate for candidate in source.thresholds if candidate.method == source.method]
    threshold = deciding(of_method, choice.target_risk_percent, certified=choice.certified)
    asked = _in_common(required, source.where)
    views = {view.name: view for reader in readers.values() for view in views_read(reader, where=source.where)}
    check_claims(asked, list(views.values()), source.where)
    kappa, fitted_prompt = states[0].kappa if states else None, asked.prompt
    with _checkpoint(source, choice, asked.model) as folder:
        files = checkpoint_digests(folder)
        notes = [f"checkpoint: {note}" for note in other_checkpoint(asked.checkpoint, files)]
        every = [needs for reader in readers.values() for needs in all_requirements(reader, where=source.where)]
        notes += other_prompts(every, choice.prompt)
        _refuse(notes, folder, source.where, choice.allow_other, "Give the actor and the prompt that it was fitted on.")
        if choice.prompt is not None:
            prompt = PromptText(name=choice.prompt, sha256=prompts.template_sha256(choice.prompt))
            asked = asked.model_copy(update={"prompt": prompt})
        actor = opens(folder, asked, kappa)
    of_states = list(dict.fromkeys(note for reader in readers.values() for note in other_states(reader, actor.config)))
    notes += of_states
    _refuse(of_states, folder, source.where, choice.allow_other, "States are read in another way now: fit it again.")
    check_widths(readers, actor.config.hidden_size)
    distances = distance.read(source.bundle, actor.config.hidden_size) if features_of(*readers.values()) else None
    return LoadedScorer(
        actor=actor,
        requirements=asked,
        readers=readers,
        method=source.method,
        views=[
            view.model_copy(update={"prompt": asked.prompt}) if view.prompt == fitted_prompt else view
            for view in views.values()
        ],
        threshold=threshold,
        thresholds=source.thresholds,
        notes=tuple(notes),
        bundle=source.bundle,
        distances=distances,
        set_thresholds=set_thresholds,
        digest=digest_of(
            [
                {name: sha256_file(source.files[name]) for name in readers},
                *(source.method, files, asked.prompt.model_dump(), None if threshold is None else asdict(threshold)),
                *([] if distances is None else [distances.distances.tolist()]),
                *map(asdict, set_thresholds),
            ]
        ),
    )


@contextlib.contextmanager
def _checkpoint(source: ReaderSource, choice: ScorerChoice, settings: Wire) -> Iterator[Path]:
    """Yield the folder of the actor; an adapter is merged into its base for as long as it takes to load it."""
    base = choice.base
    if (named := source.checkpoint if choice.checkpoint is None else choice.checkpoint) is None:
        raise ConfigError(
            f"{source.where}: no actor travels with this reader. Give the checkpoint of its actor (--checkpoint), such"
            " as results/<study>/actors/<backbone>/<actor>/<seed>."
        )
    folder = find_checkpoint(named)
    if is_adapter(folder) != (base is not None):
        actual = "an adapter without a base" if base is None else f"a whole model, and a base, {base}"
        raise ConfigError(
            f"{folder}: {actual}. Expected a whole model, or an adapter and its base. Give the folder or"
            " owner/name@revision of the adapter (--checkpoint) and of its base (--base), or of the whole model alone."
        )
    if base is None:
        yield folder
        return
    with _temporary_folder() as merged:
        merge(folder, find_checkpoint(base), merged, settings)
        yield merged


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


def _in_common(required: Mapping[str, Requirements], where: str) -> Requirements:
    """Return what all readers depend on, without views; a reader that was fitted on nothing takes any images."""
    images = next((needs.images for needs in required.values() if needs.images != ()), ())
    (first, common), *others = (
        (name, needs.model_copy(update={"views": (), "images": images if needs.images == () else needs.images}))
        for name, needs in required.items()
    )
    for name, other in others:
        if other != common:
            raise ArtifactError(
                f"{where}: the readers of {first} and {name} were fitted for different actors, prompts or decodings."
                " Expected readers of one actor. Score one of them at a time."
            )
    return common


def _refuse(notes: Sequence[str], folder: Path, where: str, allow_other: bool, advice: str) -> None:
    if notes and not allow_other:
        raise ArtifactError(
            f"{where}: not what the reader was fitted on: {'; '.join(notes)} (checkpoint {folder}). {advice} To score"
            " nevertheless, allow others (--allow-other, in Python allow_other=True); every result will say so."
        )

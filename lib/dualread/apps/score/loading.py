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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from dualread import plugins
from dualread.apps.score import ScorerChoice, distance
from dualread.apps.score.answer_sets import check_sets
from dualread.apps.score.answering import ActorNeeds
from dualread.apps.score.bundle import ReaderSource, find, find_checkpoint
from dualread.apps.score.claims import ClaimDivider
from dualread.apps.score.readings import LoadedReaders
from dualread.digests import digest_of
from dualread.errors import ArtifactError, ConfigError, did_you_mean
from dualread.evaluation.thresholds import deciding
from dualread.models import prompts
from dualread.models.adapters import is_adapter, merge
from dualread.models.backbones.encode import Encoder
from dualread.models.backbones.tokenizer import CALLED, without_calls
from dualread.models.replay.forward import middle_layer
from dualread.models.replay.rules import read_of_example, rules
from dualread.readers.requirements import ScoringReader
from dualread.schema.recorded import PromptText, Requirements
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

    `required` is what the readers depend on; the prompt of the first one is that of the question. A ConfigError says
    that the library has no such prompt.
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


@dataclass(frozen=True, kw_only=True)
class ChosenReaders:
    """The readers that are chosen, as far as they are known without their actor; `needs` is what all of them need."""

    choice: ScorerChoice
    source: ReaderSource
    readers: LoadedReaders
    needs: ActorNeeds

    @classmethod
    def load(cls, choice: ScorerChoice) -> "ChosenReaders":
        """Load them.

        Raises:
            ConfigError, ArtifactError: See `scorer.Scorer.load`.
        """
        is_given = choice.checkpoint is not None
        source = find(choice.reader, revision=choice.revision, with_checkpoint=not is_given, plugins=choice.plugins)
        by_method = {name: source.scoring_reader(name) for name in dict.fromkeys((source.method, *choice.methods))}
        set_thresholds = [candidate for candidate in source.answer_sets if candidate.method in by_method]
        check_sets(by_method, set_thresholds, source.where)
        readers = LoadedReaders(
            by_method=by_method,
            method=source.method,
            threshold=deciding(
                [candidate for candidate in source.thresholds if candidate.method == source.method],
                choice.target_risk_percent,
                certified=choice.certified,
            ),
            set_thresholds=set_thresholds,
        )
        requirements = _in_common(by_method, source.where)
        views = list({view.name: view for reader in by_method.values() for view in reader.views}.values())
        needs = ActorNeeds(
            requirements=requirements,
            views=views,
            features=readers.features,
            kappa=next((reader.states.kappa for reader in by_method.values() if reader.states is not None), None),
            divider=ClaimDivider.from_requirements(requirements, views, source.where),
        )
        return cls(choice=choice, source=source, readers=readers, needs=needs)

    def with_actor(self, opens: Opens[A]) -> LoadedScorer[A]:
        """Open their actor by `opens`, if all that is known without it fits.

        Raises:
            ConfigError, ArtifactError: See `scorer.Scorer.load`.
        """
        choice, by_method, required = self.choice, self.readers.by_method, self.needs.requirements
        with self._checkpoint() as folder:
            files = checkpoint_digests(folder)
            notes = [f"checkpoint: {note}" for note in other_checkpoint(required.checkpoint, files)]
            notes += other_prompts([needs for reader in by_method.values() for needs in reader.needs], choice.prompt)
            self._refuse(notes, folder, "Give the actor and the prompt that it was fitted on.")
            needs = self.needs if choice.prompt is None else _with_prompt(self.needs, choice.prompt)
            actor = opens(folder, needs)
        of_states = dict.fromkeys(note for reader in by_method.values() for note in other_states(reader, actor.config))
        self._refuse([*of_states], folder, "States are read in another way now: fit it again.")
        width = actor.config.hidden_size
        self.readers.check_widths(width)
        distances = distance.read(self.source.bundle, width) if needs.features else None
        threshold = self.readers.threshold
        return LoadedScorer(
            actor=actor,
            needs=needs,
            readers=replace(self.readers, distances=distances),
            notes=(*notes, *of_states),
            digest=digest_of(
                [
                    {name: sha256_file(self.source.files[name]) for name in by_method},
                    *(self.readers.method, files, needs.requirements.prompt.model_dump()),
                    None if threshold is None else asdict(threshold),
                    *([] if distances is None else [distances.distances.tolist()]),
                    *map(asdict, self.readers.set_thresholds),
                ]
            ),
        )

    @contextlib.contextmanager
    def _checkpoint(self) -> Iterator[Path]:
        """Yield the folder of the actor; an adapter is merged into its base for as long as it takes to load it."""
        base, checkpoint = self.choice.base, self.choice.checkpoint
        if (named := self.source.checkpoint if checkpoint is None else checkpoint) is None:
            raise ConfigError(
                f"{self.source.where}: no actor travels with this reader. Give the checkpoint of its actor"
                " (--checkpoint), such as results/<study>/actors/<backbone>/<actor>/<seed>."
            )
        folder = find_checkpoint(named)
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
            merge(folder, find_checkpoint(base), merged, self.needs.requirements.model)
            yield merged

    def _refuse(self, notes: Sequence[str], folder: Path, advice: str) -> None:
        if notes and not self.choice.allow_other:
            raise ArtifactError(
                f"{self.source.where}: not what the reader was fitted on: {'; '.join(notes)} (checkpoint {folder})."
                f" {advice} To score nevertheless, allow others (--allow-other, in Python allow_other=True); every"
                " result will say so."
            )


def _with_prompt(needs: ActorNeeds, prompt: str) -> ActorNeeds:
    """Return `needs` with another prompt of the question, in views that show the same one, too."""
    fitted, chosen = needs.requirements.prompt, PromptText(name=prompt, sha256=prompts.template_sha256(prompt))
    views = [view.model_copy(update={"prompt": chosen}) if view.prompt == fitted else view for view in needs.views]
    return replace(needs, requirements=needs.requirements.model_copy(update={"prompt": chosen}), views=views)


def _in_common(readers: Mapping[str, ScoringReader], where: str) -> Requirements:
    """Return what all readers depend on, without views; a reader that was fitted on nothing takes any images."""
    images = next((reader.requirements.images for reader in readers.values() if reader.requirements.images != ()), ())
    (first, common), *others = (
        (name, needs.model_copy(update={"views": (), "images": images if needs.images == () else needs.images}))
        for name, needs in ((name, reader.requirements) for name, reader in readers.items())
    )
    for name, other in others:
        if other != common:
            raise ArtifactError(
                f"{where}: the readers of {first} and {name} were fitted for different actors, prompts or decodings."
                " Expected readers of one actor. Score one of them at a time."
            )
    return common


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

"""The specs of readers: fitted, scored and tuned."""

from collections.abc import Mapping
from dataclasses import dataclass

from dualread.specs.generation import ShardSpec
from dualread.specs.parts import Plugin, Settings, Split


@dataclass(frozen=True, kw_only=True)
class MethodReference(Plugin):
    """A method: its name, its reader's module, and by role the methods that it builds on."""

    method: str
    parents: "Mapping[str, MethodReference]"


@dataclass(frozen=True, kw_only=True)
class ReaderSpec:
    """A reader of one actor.

    Attributes:
        reader: The method, its reader, and those that it builds on.
        views: The views that the reader reads in this stage.
    """

    backbone: str
    actor: str
    seed: int
    reader: MethodReference
    views: tuple[str, ...]

    @property
    def run(self) -> dict[str, str | int]:
        """What identifies the reader: backbone, actor, seed, method."""
        return {"backbone": self.backbone, "actor": self.actor, "seed": self.seed, "method": self.reader.method}

    @property
    def name(self) -> str:
        """The reader in messages."""
        return "/".join(map(str, self.run.values()))


@dataclass(frozen=True, kw_only=True)
class AskedView:
    """A view that a reader reads when it scores, and what is shown and asked for it."""

    name: str
    asked: ShardSpec


@dataclass(frozen=True, kw_only=True)
class ScoringSpec:
    """How an actor is asked where a method scores.

    Nothing is fitted with it. The reader's file records it, with the digests of the actor's checkpoint and of the
    prompts, and so says all that scoring a new image depends on.

    Attributes:
        model: The backbone's settings.
        contract: The form of the completions, see `grading.parse`.
        answer: What is shown and asked for the answers on which the reader is fitted.
        views: The same for each view that the reader reads when it scores, in the order in which it reads them.
    """

    model: Settings
    contract: str
    answer: ShardSpec
    views: tuple[AskedView, ...]


@dataclass(frozen=True, kw_only=True)
class FitReadersSpec(ReaderSpec):
    """A reader that is fitted with `settings` on the answers to the split `examples`."""

    settings: Settings
    examples: Split
    scoring: ScoringSpec


@dataclass(frozen=True, kw_only=True)
class Shard:
    """The answers to one split under one condition."""

    dataset: str
    split: str
    condition: str

    @property
    def name(self) -> str:
        """The shard in names of inputs and in messages."""
        return f"{self.dataset}/{self.split}/{self.condition}"


@dataclass(frozen=True, kw_only=True)
class ScoreAnswersSpec(ReaderSpec):
    """A fitted reader's confidences in the answers of `shards`."""

    shards: tuple[Shard, ...]


@dataclass(frozen=True, kw_only=True)
class TuneReaderSpec(ReaderSpec):
    """A search for a reader's settings.

    Attributes:
        data: What the study's data are; the output names them, too.
        dataset: The data set whose training answers it is fitted on and whose validation answers judge it.
        settings: The settings that are not searched.
    """

    study: str
    data: str
    dataset: str
    trials: int
    settings: Settings

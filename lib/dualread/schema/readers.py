"""Methods and their readers: what a study says of them, and what the stages that fit and score are told."""

from typing import Annotated, Literal

from pydantic import Field

from dualread.schema.answers import Shard, ShardSpec
from dualread.schema.base import COST, DatasetSplit, Listed, Name, Names, Plugin, Positive, RunSpec, Section, Wire
from dualread.schema.data import PluginChoice
from dualread.schema.groups import GroupedBy


class TunedOn(Section):
    """Which tuning study found the settings of a method. The table hparams prints it; nothing else reads it."""

    study: str
    """The study."""
    data: str
    """Its data."""
    backbone: str
    """The backbone."""
    actor: str
    """The actor."""
    seed: Annotated[int, Field(ge=0)]
    """The seed of the actor."""
    trials: Positive
    """The number of trials."""
    settings: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    """Digest of the settings found."""


class Transfer(Section):
    """Whose reader a method applies, in the place of one that is fitted on the answers of its own actor."""

    method: Name
    """The method whose reader it is. The actor may be another one, of states of the same size."""
    seed: Literal["next"] | None = None
    """`next`: answers of each seed are judged by the reader of the next one, those of the last by that of the first.
    Without it, the seed is that of the answers, or the first one where the other actor has no such seed."""


class Method(Section):
    """A confidence method: which reader reads the answers of which actor."""

    label: str
    """Its name in tables and figures."""
    group: str
    """The heading of its rows in tables."""
    actor: Name
    """The actor whose answers it reads."""
    reader: Name
    """The plugin that reads: lib/dualread/readers/<reader>.py."""
    parents: dict[str, Name] = Field(default_factory=dict)
    """Methods that the reader builds on, by role. What is called `target` gives the labels of training answers in the
    place of correctness: whether its scores of them are high or low."""
    views: Names | None = None
    """The views that the reader reads."""
    cost: Annotated[str, Field(pattern=COST)] | None = None
    """The paper's notation: t one answer, rho one pass over a prompt, tau one replay."""
    settings: Wire = Field(default_factory=dict)
    """Settings of the reader."""
    tuned_on: TunedOn | None = None
    """Which tuning study found the settings."""
    transfer: Transfer | None = None
    """Whose reader it applies; without it, a reader is fitted on the answers of `actor`."""
    uncalibrated: Literal[True] | None = None
    """Whether nothing is fitted, and so no label is read: of its scores only the order counts, and metrics that need
    probabilities are dashes. For readers that are fitted only to turn a score into one (SCORES_UNFITTED)."""


class AppliedReader(Section):
    """The reader that a transfer applies: its method, and the actor and seed of the answers that it is fitted on."""

    method: str
    actor: str
    seed: int


class MethodReference(Plugin):
    """A method: its name, its reader's module, and by role the methods that it builds on."""

    method: str
    parents: "dict[str, MethodReference]"

    @property
    def modules(self) -> set[str]:
        """The modules of its reader, and of those of the methods that it builds on."""
        return {self.module}.union(*(parent.modules for parent in self.parents.values()))


class ReaderSpec(RunSpec):
    """A reader of one actor."""

    reader: MethodReference  # the method, its reader, and those that it builds on
    views: Listed[str]  # the views that the reader reads in this stage
    of_parents: Listed[str] | None = None  # the views that the readers on which it builds read besides; None for none

    @property
    def run(self) -> dict[str, str | int]:
        """What identifies the reader: backbone, actor, seed, method."""
        return {"backbone": self.backbone, "actor": self.actor, "seed": self.seed, "method": self.reader.method}

    @property
    def name(self) -> str:
        """The reader in messages."""
        return "/".join(map(str, self.run.values()))


class AskedView(Section):
    """A view that a reader reads when it scores, and what is shown and asked for it."""

    name: str
    asked: ShardSpec
    groups: GroupedBy | None = None  # by what it groups answers, where it asks nothing


class ScoringSpec(Section):
    """How an actor is asked where a method scores.

    Nothing is fitted with it. The reader's file records it, with the digests of the actor's checkpoint and of the
    prompts, and so says all that scoring a new image depends on.
    """

    model: Wire  # the backbone's settings
    contract: Name  # the format of the completions, see `grading.contracts`
    answer: ShardSpec  # what is shown and asked for the answers on which the reader is fitted
    # The same for each view that the reader reads when it scores, in the order in which it reads them.
    views: Listed[AskedView]
    # How the answers, which are reports, are divided into claims; None for answers as a whole.
    spans: PluginChoice | None = None


class FitReadersSpec(ReaderSpec):
    """A reader that is fitted with `settings` on the answers to the split `examples`."""

    settings: Wire
    examples: DatasetSplit
    scoring: ScoringSpec
    same_as: str | None = None  # the actor whose checkpoint answers, if it is another one
    uncalibrated: Literal[True] | None = None  # whether nothing is fitted, so that it gives scores alone


class ScoreAnswersSpec(ReaderSpec):
    """A fitted reader's confidences in the answers of `shards`."""

    shards: Listed[Shard]
    # Whether nothing was fitted, so that ranks of its scores stand for confidences.
    uncalibrated: Literal[True] | None = None
    transfer: AppliedReader | None = None  # the reader, if it is fitted on the answers of another actor or seed

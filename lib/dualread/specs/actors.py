"""The specs of actors: pretrained, copied or trained."""

from collections.abc import Mapping
from dataclasses import dataclass

from dualread.specs.parts import ActorSpec, ConfiguredPlugin, ModelSpec, Plugin, Prompt, Repository, Settings


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """The training of a tiny backbone.

    Attributes:
        learning_rate: Peak learning rate of the weight matrices; that of all other parameters is half of it.
        warmup_steps: Steps until the peak.
        weight_decay: Weight decay of the weight matrices.
        mixture: The share of each prompt; the shares sum to 1.
    """

    steps: int
    images_per_step: int
    questions_per_image: int
    learning_rate: float
    warmup_steps: int
    weight_decay: float
    clip_norm: float
    mixture: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class PretrainingReport:
    """What is measured after pretraining.

    Attributes:
        questions: Held-out questions that are asked.
        max_completion_tokens: Longest answer in tokens.
    """

    questions: int
    max_completion_tokens: int


@dataclass(frozen=True, kw_only=True)
class PretrainBaseSpec(ModelSpec):
    """A base that is pretrained from scratch.

    Attributes:
        seed: The seed of weights and batches.
        pool: What it is trained on.
        architecture: What it is built of: the module, and the sizes that its `create` needs.
        training: How it is trained.
        reported: What is measured afterwards.
    """

    seed: int
    pool: ConfiguredPlugin
    architecture: ConfiguredPlugin
    training: Pretraining
    reported: PretrainingReport


@dataclass(frozen=True, kw_only=True)
class AdapterSpec:
    """An adapter that was trained elsewhere.

    Attributes:
        repository: Where it is on the hub; None if the folder is an input.
        base: The repository that its base comes from; None if it comes from none.
    """

    repository: Repository | None = None
    base: str | None = None


@dataclass(frozen=True, kw_only=True)
class CopyCheckpointSpec:
    """A checkpoint that was trained elsewhere.

    Attributes:
        model: The settings with which it is opened.
        repository: Where it is on the hub; None if the folder is an input.
        adapter: What is merged into it; None if nothing is.
    """

    model: Settings
    repository: Repository | None = None
    adapter: AdapterSpec | None = None


@dataclass(frozen=True, kw_only=True)
class ProbeCheckpointSpec(ModelSpec):
    """Experiments with a checkpoint."""


@dataclass(frozen=True, kw_only=True)
class TrainActorSpec(ActorSpec):
    """An actor that is trained from a base."""

    training: Plugin
    reward: Plugin
    prompt: Prompt
    settings: Settings

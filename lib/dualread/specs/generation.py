"""The specs of answers: which questions a shard or view asks, what is shown, and how the actor answers."""

from dataclasses import dataclass
from typing import Literal

from dualread.specs.parts import ActorSpec, ConfiguredPlugin, Prompt

Image = Literal["original", "donor", "shuffled", "black"]


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How completions are drawn.

    Attributes:
        temperature: 0 is greedy.
        top_p: The probability that a token is drawn from.
    """

    temperature: float
    top_p: float
    n_samples: int
    max_completion_tokens: int


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Completions whose likelihood is computed: words, or all integers from a first to a last one."""

    words: tuple[str, ...] | None = None
    integers: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class ShardSpec:
    """What an actor is shown and asked; generation and replay of a shard have it in common.

    Attributes:
        condition: The condition; for a view of its answers, the condition and the view: "original/p_true".
        image: Which image is shown, see `models.conditions`.
        decoding: How completions are drawn; None where choices are scored.
        choices: The completions whose likelihood is computed.
        completions: The condition whose committed completions are forced here; None if the shard has its own.
        shows: For a view with a black image, the image that its condition shows.
        answer_contract: How the committed completions are parsed, for a prompt that contains the answer. Questions
            whose completion has no answer are not asked.
    """

    dataset: str
    split: str
    condition: str
    image: Image
    prompt: Prompt
    decoding: Decoding | None = None
    choices: Choices | None = None
    completions: str | None = None
    shows: str | None = None
    answer_contract: str | None = None

    @property
    def name(self) -> str:
        """The shard in messages."""
        return f"{self.dataset}/{self.split}/{self.condition}"


@dataclass(frozen=True, kw_only=True)
class GenerateSpec(ActorSpec):
    """An actor's answers to a shard, or a view of them; `engine` is the plugin that generates."""

    shard: ShardSpec
    engine: ConfiguredPlugin

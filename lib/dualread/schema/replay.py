"""The replay: how it is run, what it reads and stores, and how far it may differ from the generation."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from dualread.schema.base import AtLeast0, Positive, Section, Share

Kappa = Annotated[float, Field(gt=0, le=100)]

# What a replay stores only where a reader of the actor reads it. Other studies keep their bytes and their speed.
OPTIONAL_TENSORS = ("token_entropies", "h_think")
# So are the means over the tokens of single images, by their place: h_image_1, h_image_2, ...
OF_ONE_IMAGE = "h_image_"
# What it takes from image tokens, and has not where no image is shown.
OF_IMAGE = ("h_global", "h_evid")


class ReplaySettings(Section):
    """How replay is run."""

    batch_size: Positive
    """Answers in one pass."""


class Agreement(Section):
    """How far a replay may differ from the generation that it replays."""

    max_mean_log_prob_difference: AtLeast0
    """Mean absolute difference of token log-probabilities."""
    max_argmax_mismatch_share: Share
    """Share of greedy tokens that are not the replay's best."""
    argmax_tolerance: AtLeast0
    """Log-probability by which such a token may be worse and not count."""


class Replay(Section):
    """The teacher-forced pass over generated tokens that gives hidden states."""

    model_config = ConfigDict(serialize_by_alias=True)

    from_: Annotated[Literal["generation"] | None, Field(alias="from")] = None
    """With `generation`, the pass that makes a greedy answer keeps its states, and a sample alone is replayed. By
    default, all answers are replayed."""

    settings: ReplaySettings
    """How it is run."""
    kappa: Kappa
    """Temperature of the visual pooling."""
    agreement: Agreement
    """How far it may differ from the generation."""


class PassReading(Section):
    """What is read of a completion's states by the pass that makes it."""

    # So that the code that reads them is in these keys alone.
    module: Literal["models.replay.of_generation"] = "models.replay.of_generation"
    kappa: Kappa  # temperature of the visual pooling
    middle: bool  # whether the state in the middle layer is read, too
    entropies: bool  # whether the entropies of tokens are computed, too

"""The spec of a replay."""

from dataclasses import dataclass

from dualread.specs.generation import ShardSpec
from dualread.specs.parts import ActorSpec

# What a replay stores only where a reader of the actor reads it. Other studies keep their bytes and their speed.
OPTIONAL_TENSORS = ("token_entropies",)


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How far a replay may differ from the generation that it replays.

    Attributes:
        max_mean_log_prob_difference: Mean absolute difference of token log-probabilities.
        max_argmax_mismatch_share: Share of greedy tokens that are not the replay's best.
        argmax_tolerance: Log-probability by which such a token may be worse and not count.
    """

    max_mean_log_prob_difference: float
    max_argmax_mismatch_share: float
    argmax_tolerance: float


@dataclass(frozen=True, kw_only=True)
class ReplaySpec(ActorSpec):
    """The hidden states of a shard's completions.

    Attributes:
        batch_size: Answers in one pass.
        kappa: Temperature of the visual pooling.
        agreement: How far the replay may differ from the generation.
        optional_tensors: Those of `OPTIONAL_TENSORS` that are stored; None for none.
    """

    shard: ShardSpec
    batch_size: int
    kappa: float
    agreement: Agreement
    optional_tensors: tuple[str, ...] | None = None

"""The reward of the state signal: R = z - (c - z)^2 + R_fmt, with the confidence c that a head reads from the states.

This is RLCR with the state's confidence in place of the stated one. The head is that of the training `state_signal`,
which computes c in [0, 1] of each completion before the step changes a weight; c has no gradient.
"""

from collections.abc import Sequence
from typing import Any

from dualread.errors import ConfigError
from dualread.training.rewards.base import Verdict

CONTRACT = "single"
READS_STATE_CONFIDENCE = True
EXTRA_PASSES = 1  # over each completion, for c; `dualread plan` reads this


def reward(
    verdicts: Sequence[Verdict], *, state_confidence: Sequence[float] | None = None, **columns: Any
) -> list[float]:
    """Return R in [-1.5, 1] for each completion, whose c is its `state_confidence`; higher is better."""
    if state_confidence is None:
        raise ConfigError(
            "reward state_signal: the training gives no state_confidence. Expected that of a head. Set the actor's"
            " training to state_signal, or another reward."
        )
    return [v.correctness_reward - (c - v.correct) ** 2 for v, c in zip(verdicts, state_confidence, strict=True)]


def terms(
    verdicts: Sequence[Verdict], *, state_confidence: Sequence[float] = (), **columns: Any
) -> dict[str, list[float]]:
    """Return state_confidence = c for the train log."""
    return {"state_confidence": list(state_confidence)}

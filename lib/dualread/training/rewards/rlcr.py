"""RLCR: reinforcement learning with calibration rewards, R = z - (c - z)^2 + R_fmt (DualRead, app:baseline_protocols).

z is 1 for a correct answer and 0 otherwise, c in [0, 1] is the stated confidence, and -(c - z)^2 is the negative Brier
score, with weight 1. The Brier score is a proper scoring rule: the expected reward is highest if c is the true
probability that the answer is correct. An invalid confidence counts as c = 0.5, and R_fmt is -0.5 (docs/choices.md,
"Rewards").
"""

from collections.abc import Sequence
from typing import Any

from dualread.training.rewards.base import Verdict

CONTRACT = "single"


def reward(verdicts: Sequence[Verdict], **columns: Any) -> list[float]:
    """Return R in [-1.5, 1] for each completion, higher is better; `columns` are not used."""
    return [v.correctness_reward + _calibration(v) for v in verdicts]


def terms(verdicts: Sequence[Verdict], **columns: Any) -> dict[str, list[float]]:
    """Return calibration = -(c - z)^2 for the train log."""
    return {"calibration": [_calibration(v) for v in verdicts]}


def _calibration(verdict: Verdict) -> float:
    return -((verdict.scored_confidence - verdict.correct) ** 2)

"""DCPO: decoupled rewards for the answer and for the confidence (Ma 2026, arXiv 2603.09117; app:baseline_protocols).

Tokens before the confidence block are trained with `reward`, z + R_fmt, tokens of the block with `calibration_reward`,
R_c; `training/dcpo.py` gives each token its own advantage. R_c depends on the groups, so that it is logged there, under
the name `calibration`. See docs/choices.md, "Rewards" and "DCPO".
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from dualread.training.rewards.base import Verdict

CONTRACT = "single"


def reward(verdicts: Sequence[Verdict], **columns: Any) -> list[float]:
    """Return z + R_fmt in {-0.5, 0, 0.5, 1} for each completion; `columns` are not used."""
    return [v.correctness_reward for v in verdicts]


def calibration_reward(verdicts: Sequence[Verdict], *, groups: Sequence[str], gamma: float) -> list[float]:
    """Return R_c = -|c - (gamma * group mean of z + (1 - gamma) * z)| in [-1, 0], higher is better.

    Completions with equal ids in `groups`, which are all there and in any order, have one prompt.
    """
    correct = defaultdict(list)
    for group, verdict in zip(groups, verdicts, strict=True):
        correct[group].append(verdict.correct)
    accuracy = {group: sum(values) / len(values) for group, values in correct.items()}
    return [
        -abs(verdict.scored_confidence - (gamma * accuracy[group] + (1 - gamma) * verdict.correct))
        for group, verdict in zip(groups, verdicts, strict=True)
    ]

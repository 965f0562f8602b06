"""DCPO: decoupled rewards for the answer and for the confidence (Ma 2026, arXiv 2603.09117; app:baseline_protocols).

`reward` is what the tokens before the confidence block are trained with, and `calibration_reward` what those of the
block are trained with; `training/dcpo.py` gives each token its own. R_fmt goes to the first, z + R_fmt as for every
actor (PROTOCOL 6): R_c is defined without it, and takes an invalid confidence for 0.5.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from dualread.models.rewards._verdict import verdict_terms, verdicts

CONTRACT = "single"


def reward(completions: Sequence[str], reference_answers: Sequence[Sequence[str]], **columns: Any) -> list[float]:
    """Return z + R_fmt in {-0.5, 0, 0.5, 1}, one value a completion; `columns` are not used."""
    return [v.correctness_reward for v in verdicts(completions, reference_answers, CONTRACT)]


def calibration_reward(
    completions: Sequence[str],
    reference_answers: Sequence[Sequence[str]],
    *,
    groups: Sequence[str],
    gamma: float,
) -> list[float]:
    """Return R_c = -|c - (gamma * group mean of z + (1 - gamma) * z)| in [-1, 0], higher is better.

    Args:
        completions: The texts; all completions of a group have to be among them, in any order.
        reference_answers: Gold answers of each.
        groups: The prompt that each was sampled for; equal values are one group.
        gamma: Weight of the group's accuracy against the completion's own z, in [0, 1].
    """
    found = verdicts(completions, reference_answers, CONTRACT)
    correct = defaultdict(list)
    for group, verdict in zip(groups, found, strict=True):
        correct[group].append(verdict.correct)
    accuracy = {group: sum(values) / len(values) for group, values in correct.items()}
    return [
        -abs(verdict.scored_confidence - (gamma * accuracy[group] + (1 - gamma) * verdict.correct))
        for group, verdict in zip(groups, found, strict=True)
    ]


def terms(
    completions: Sequence[str], reference_answers: Sequence[Sequence[str]], **columns: Any
) -> dict[str, list[float]]:
    """Return the parts for the train log: correct and valid as 0 or 1, confidence or NaN where invalid.

    R_c needs the groups; `training/dcpo.py` adds it to the log under the name `calibration`.
    """
    return verdict_terms(verdicts(completions, reference_answers, CONTRACT))

"""DCPO: decoupled rewards for the answer and for the confidence (Ma 2026, arXiv 2603.09117; app:baseline_protocols).

Tokens before the confidence block are trained with `reward`, tokens of the block with `calibration_reward`;
`training/dcpo.py` gives each token its own advantage. `reward` is z + R_fmt, as for every actor (docs/choices.md,
"Rewards").
`calibration_reward` is R_c, which is defined without R_fmt; an invalid confidence counts as 0.5.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from dualread.models.rewards._verdict import verdict_terms, verdicts

CONTRACT = "single"


def reward(completions: Sequence[str], reference_answers: Sequence[Sequence[str]], **columns: Any) -> list[float]:
    """Return z + R_fmt in {-0.5, 0, 0.5, 1} for each completion; `columns` are not used."""
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
        completions: Generated texts. They have to include all completions of every group, in any order.
        reference_answers: The accepted reference answers of each completion.
        groups: An id of the prompt of each completion; completions with equal ids are one group.
        gamma: Weight in [0, 1] of the group's accuracy; the completion's own z has weight 1 - gamma.
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
    """Return the terms for the train log: correct and valid as 0 or 1, and confidence, NaN if invalid.

    R_c depends on the groups; `training/dcpo.py` logs it under the name `calibration`.
    """
    return verdict_terms(verdicts(completions, reference_answers, CONTRACT))

"""RLVR: reinforcement learning with verifiable rewards, R = z + R_fmt (DualRead, app:grpo).

z is 1 for a correct answer and 0 otherwise; R_fmt is 0 for a completion that follows the contract and -0.5 otherwise.
The contract requires a stated confidence, but its value does not influence the reward.
"""

from collections.abc import Sequence
from typing import Any

from dualread.models.rewards._verdict import verdict_terms, verdicts

CONTRACT = "single"


def reward(completions: Sequence[str], reference_answers: Sequence[Sequence[str]], **columns: Any) -> list[float]:
    """Return R in {-0.5, 0, 0.5, 1} for each completion; `columns` are not used."""
    return [v.correctness_reward for v in verdicts(completions, reference_answers, CONTRACT)]


def terms(
    completions: Sequence[str], reference_answers: Sequence[Sequence[str]], **columns: Any
) -> dict[str, list[float]]:
    """Return the terms for the train log: correct and valid as 0 or 1, and confidence, NaN if invalid."""
    return verdict_terms(verdicts(completions, reference_answers, CONTRACT))

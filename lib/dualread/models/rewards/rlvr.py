"""RLVR: reinforcement learning with verifiable rewards, R = z + R_fmt (DualRead, app:grpo).

z is 1 for a correct answer and 0 otherwise; R_fmt is 0 where the contract holds and -0.5 where it does not. The stated
confidence is required by the contract and earns nothing.
"""

from collections.abc import Sequence
from typing import Any

from dualread.models.rewards._verdict import verdict_terms, verdicts

CONTRACT = "single"


def reward(completions: Sequence[str], reference_answers: Sequence[Sequence[str]], **columns: Any) -> list[float]:
    """Return R in {-0.5, 0, 0.5, 1}, one value a completion; `columns` are not used."""
    return [v.correctness_reward for v in verdicts(completions, reference_answers, CONTRACT)]


def terms(
    completions: Sequence[str], reference_answers: Sequence[Sequence[str]], **columns: Any
) -> dict[str, list[float]]:
    """Return the reward's parts for the train log: correct and valid as 0 or 1, confidence or NaN where invalid."""
    return verdict_terms(verdicts(completions, reference_answers, CONTRACT))

"""RLVR: reinforcement learning with verifiable rewards, R = z + R_fmt (DualRead, app:grpo).

z is 1 for a correct answer and 0 otherwise; R_fmt is 0 where the contract holds and -0.5 where it does not. The stated
confidence is required by the contract and earns nothing.
"""

import math
from collections.abc import Sequence
from typing import Any

from dualread.rewards._verdict import verdicts

CONTRACT = "single"


def reward(completions: Sequence[str], reference_answers: Sequence[Sequence[str]], **columns: Any) -> list[float]:
    """Return R in {-0.5, 0, 0.5, 1}, one value a completion; `columns` are not used."""
    return [float(v.correct) + v.format_reward for v in verdicts(completions, reference_answers, CONTRACT)]


def terms(
    completions: Sequence[str], reference_answers: Sequence[Sequence[str]], **columns: Any
) -> dict[str, list[float]]:
    """Return the reward's parts for the train log: correct and valid as 0 or 1, confidence or NaN where invalid."""
    found = verdicts(completions, reference_answers, CONTRACT)
    return {
        "correct": [float(v.correct) for v in found],
        "valid": [float(v.valid) for v in found],
        "confidence": [math.nan if v.confidence is None else v.confidence for v in found],
    }

"""RLVR: reinforcement learning with verifiable rewards, R = z + R_fmt (DualRead, app:grpo).

z is 1 for a correct answer and 0 otherwise; R_fmt is 0 for a completion that follows the contract and -0.5 otherwise.
The contract requires a stated confidence, but its value does not influence the reward.
"""

from collections.abc import Sequence
from typing import Any

from dualread.training.rewards.base import Verdict

CONTRACT = "single"


def reward(verdicts: Sequence[Verdict], **columns: Any) -> list[float]:
    """Return R in {-0.5, 0, 0.5, 1} for each completion; `columns` are not used."""
    return [v.correctness_reward for v in verdicts]

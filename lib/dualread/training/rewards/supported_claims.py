"""The share of a report's sentences that the reference report of its drawn image supports: R = share + R_fmt.

A sentence that states nothing known counts as one that is not supported, so that it does not pay to write one. R_fmt is
0 for a completion that follows the contract and -0.5 otherwise; without a valid answer block, the share is 0. As in
RLVR, the value of the stated confidence does not influence the reward. Sentences that are left out cost nothing.
"""

from collections.abc import Sequence
from typing import Any

from dualread.grading.claim_labels.attributes import is_supported, sentences_of
from dualread.training.rewards.base import FORMAT_PENALTY, Verdict

CONTRACT = "single"


def reward(verdicts: Sequence[Verdict], *, reference_answers: Sequence[Sequence[str]], **columns: Any) -> list[float]:
    """Return R in [-0.5, 1] for each completion; `reference_answers` are its reference reports."""
    rewards = []
    for verdict, references in zip(verdicts, reference_answers, strict=True):
        labels = [is_supported(sentence, references) for sentence in sentences_of(verdict.parsed.answer or "")]
        rewards.append(labels.count(True) / max(len(labels), 1) + (0.0 if verdict.valid else FORMAT_PENALTY))
    return rewards

"""What every reward starts from: the verdict of the one parser and the one grader on each completion."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dualread.grading.canonical import is_correct
from dualread.grading.parse import parse

# R_fmt where the contract does not hold; 0 where it does. The paper names the term and not its size.
FORMAT_PENALTY = -0.5
# What a confidence counts as in a calibration score where it is not stated validly, as in every metric.
INVALID_CONFIDENCE = 0.5


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One completion: is it correct, does the contract hold, and the confidence in [0, 1] that it states validly."""

    correct: bool
    valid: bool
    confidence: float | None

    @property
    def format_reward(self) -> float:
        """Return R_fmt."""
        return 0.0 if self.valid else FORMAT_PENALTY

    @property
    def correctness_reward(self) -> float:
        """Return z + R_fmt, in {-0.5, 0, 0.5, 1}."""
        return float(self.correct) + self.format_reward

    @property
    def scored_confidence(self) -> float:
        """Return c: the stated confidence in [0, 1], or 0.5 where none is stated validly."""
        return INVALID_CONFIDENCE if self.confidence is None else self.confidence


def verdicts(completions: Sequence[str], reference_answers: Sequence[Sequence[str]], contract: str) -> list[Verdict]:
    """Parse and grade each completion against its own gold answers.

    Raises:
        ValueError: The two sequences differ in length, or gold answers are one string instead of several.
    """
    if len(completions) != len(reference_answers):
        raise ValueError(f"rewards: {len(completions)} completions but {len(reference_answers)} sets of gold answers.")
    return [_verdict(text, gold, contract) for text, gold in zip(completions, reference_answers, strict=True)]


def verdict_terms(found: Sequence[Verdict]) -> dict[str, list[float]]:
    """Return what every train log keeps: correct and valid as 0 or 1, confidence or NaN where invalid."""
    return {
        "correct": [float(v.correct) for v in found],
        "valid": [float(v.valid) for v in found],
        "confidence": [math.nan if v.confidence is None else v.confidence for v in found],
    }


def _verdict(completion: str, references: Sequence[str], contract: str) -> Verdict:
    if isinstance(references, str):
        raise ValueError(f"rewards: gold answers {references!r} are one string; expected a sequence of strings.")
    parsed = parse(completion, contract)
    return Verdict(
        correct=is_correct(parsed.answer, references),
        valid=parsed.status == "valid",
        confidence=parsed.confidence,
    )

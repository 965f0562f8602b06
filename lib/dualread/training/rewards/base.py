"""The verdict on a completion, from the parser and grader of `dualread.grading`; every reward starts from it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dualread import plugins
from dualread.errors import TrainingError
from dualread.grading.canonical import is_correct
from dualread.grading.parse import Parsed

_LARGEST = 3.4e38  # what float32 holds, in which rewards are compared
# R_fmt of a completion that violates the contract; it is 0 otherwise. The paper names the term but not its value.
FORMAT_PENALTY = -0.5
# Value of an invalid confidence in a calibration score, as in every metric.
INVALID_CONFIDENCE = 0.5


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A completion's text, what the contract finds in it (`parsed`), and whether its answer is correct."""

    completion: str
    parsed: Parsed
    correct: bool

    @property
    def valid(self) -> bool:
        """Whether the completion follows the contract."""
        return self.parsed.status == "valid"

    @property
    def correctness_reward(self) -> float:
        """Return z + R_fmt, in {-0.5, 0, 0.5, 1}."""
        return float(self.correct) + (0.0 if self.valid else FORMAT_PENALTY)

    @property
    def scored_confidence(self) -> float:
        """Return c, the stated confidence in [0, 1], or 0.5 if it is invalid."""
        return INVALID_CONFIDENCE if self.parsed.confidence is None else self.parsed.confidence


def verdicts(completions: Sequence[str], reference_answers: Sequence[Sequence[str]], contract: str) -> list[Verdict]:
    """Parse each completion by `contract`, and grade it against its own reference answers."""
    parse = plugins.load("contracts", contract).parse  # the spec of a training names it, too
    rows = zip(completions, map(parse, completions), reference_answers, strict=True)
    return [
        Verdict(completion=text, parsed=parsed, correct=is_correct(parsed.answer, references))
        for text, parsed, references in rows
    ]


def checked(values: Sequence[Any], questions: Sequence[str]) -> list[float]:
    """Return the rewards of completions, which have to be one finite number for each of the `questions`."""
    if len(values) != len(questions):
        raise TrainingError(
            f"training: the reward gave {len(values)} values for {len(questions)} completions. Expected one for each."
        )
    for number, (value, question) in enumerate(zip(values, questions, strict=True)):
        try:
            is_finite = bool(abs(value) <= _LARGEST)
        except (TypeError, ValueError):
            is_finite = False
        if not is_finite:
            raise TrainingError(
                f"training: the reward of completion {number + 1} of {len(values)} (question {question}) is {value!r}."
                " Expected a finite number, by which groups are compared: give a completion that cannot be judged"
                " a low one."
            )
    return [float(value) for value in values]


def terms(verdicts: Sequence[Verdict]) -> dict[str, list[float]]:
    """Return the terms of every train log: correct and valid as 0 or 1, and confidence, NaN if invalid."""
    return {
        "correct": [float(v.correct) for v in verdicts],
        "valid": [float(v.valid) for v in verdicts],
        "confidence": or_nan([v.parsed.confidence for v in verdicts]),
    }


def or_nan(values: Sequence[float | None]) -> list[float]:
    """Return the values of a term, NaN where it is undefined."""
    return [math.nan if value is None else value for value in values]

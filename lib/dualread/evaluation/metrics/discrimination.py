"""Discrimination: does a correct answer get a higher confidence than a wrong one?"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics._checks import both_classes, checked, same_length


def auroc(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Return the probability that a random correct row outranks a random wrong one, ties counted 1/2.

    In [0, 1], higher is better; 0.5 is no discrimination. A constant confidence has exactly 0.5.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows, or rows of one class only.
    """
    scores, labels = checked(confidence, correct)
    both_classes(labels)
    wins, pairs = _concordance(scores, labels)
    return wins / pairs


def within_question_auroc(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, question_keys: Sequence | np.ndarray
) -> float:
    """Return the AUROC over the (correct, wrong) pairs of rows that share a normalized question.

    A confidence that is a function of the question alone has exactly 0.5, whatever its AUROC. Pairs are pooled over
    questions, so a question weighs by its number of pairs; the alternative, a mean of one AUROC per question, would
    let a question with a single pair weigh as much as one with a thousand.

    Args:
        confidence: float64 [n] in [0, 1].
        correct: bool [n].
        question_keys: [n] strings, or integers in their place; equal keys are the same question.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows, or no question has both a correct and a wrong row.
    """
    scores, labels = checked(confidence, correct)
    keys = np.asarray(question_keys)
    same_length(confidence=scores, question_keys=keys)
    _, group = np.unique(keys, return_inverse=True)
    rows_of = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
    counts = [_concordance(scores[rows], labels[rows]) for rows in rows_of]
    pairs = sum(n for _, n in counts)
    if pairs == 0:
        raise UndefinedMetricError("no question has both a correct and a wrong row")
    return sum(wins for wins, _ in counts) / pairs


def _concordance(scores: np.ndarray, labels: np.ndarray) -> tuple[float, int]:
    """Return (pairs won, ties 1/2; all pairs), by the place of each correct row among the wrong ones; exact."""
    right, wrong = scores[labels], np.sort(scores[~labels])
    below, through = np.searchsorted(wrong, right, side="left"), np.searchsorted(wrong, right, side="right")
    return int(below.sum() + through.sum()) / 2, len(right) * len(wrong)

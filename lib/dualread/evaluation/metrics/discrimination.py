"""Accuracy, and discrimination: does a correct answer get a higher confidence than a wrong one?"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics._checks import (
    both_classes,
    checked,
    checked_correct,
    checked_groups,
    not_empty,
    same_length,
)


def accuracy(correct: npt.ArrayLike) -> float:
    """Return the accuracy of the actor: the share of correct rows.

    In [0, 1], higher is better.

    Args:
        correct: bool [n].

    Raises:
        ValueError: `correct` is not bool [n].
        UndefinedMetricError: There are no rows.
    """
    values = checked_correct(correct)
    not_empty(values)
    return int(np.count_nonzero(values)) / len(values)


def auroc(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Return the probability that a random correct row has more confidence than a random wrong one; a tie counts 1/2.

    In [0, 1], higher is better; 0.5 means no discrimination, which is the exact value of a constant confidence.

    Args:
        confidence: float64 [n] in [0, 1].
        correct: bool [n].

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows, or all rows are of one class.
    """
    scores, labels = checked(confidence, correct)
    both_classes(labels)
    wins, pairs = _concordance(scores, labels)
    return wins / pairs


def aupr_errors(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Return the area under the precision-recall curve of wrong rows, which a low confidence should find.

    It is the average precision: wrong rows are the positive class, and the sum runs over the distinct confidences from
    the lowest on, of the share of all wrong rows that have this confidence times the share of wrong rows among those
    with at most this confidence. Nothing is interpolated, and rows of equal confidence are found together. In (0, 1],
    higher is better; a constant confidence has exactly the error rate, so that values at different accuracies cannot be
    compared. Arguments and errors are those of `auroc`.

    References:
        Hendrycks and Gimpel, A Baseline for Detecting Misclassified and Out-of-Distribution Examples in Neural
        Networks, 2017 (AUPR-Error).
    """
    scores, labels = checked(confidence, correct)
    both_classes(labels)
    right, wrong = _by_level(scores, labels)
    errors = np.cumsum(wrong)
    return float(np.sum(wrong * errors / (errors + np.cumsum(right))) / errors[-1])


def fpr_at_95_tpr(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Return the share of wrong rows that are kept where confidence keeps 95% of the correct ones.

    Correct rows are the positive class. Rows of equal confidence are kept together, and nothing is interpolated: the
    threshold is the largest confidence c for which at least 95% of the correct rows have confidence >= c. In [0, 1],
    lower is better; a constant confidence has 1. Arguments and errors are those of `auroc`.

    References:
        Liang, Li and Srikant, Enhancing the Reliability of Out-of-distribution Image Detection in Neural Networks,
        2018; Corbiere et al., Addressing Failure Prediction by Learning Model Confidence, 2019 (of correct and wrong
        rows, as here).
    """
    scores, labels = checked(confidence, correct)
    both_classes(labels)
    right, wrong = _by_level(scores, labels)
    kept = 20 * np.cumsum(right) > right.sum()  # without these, fewer than 95% of the correct rows would be left
    return int(wrong[kept].sum()) / int(wrong.sum())


def within_question_auroc(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, question_keys: Sequence | np.ndarray
) -> float:
    """Return the AUROC over those (correct, wrong) pairs of rows that have the same normalized question.

    In [0, 1], higher is better. A confidence that depends on the question alone has exactly 0.5, whatever its AUROC.
    The pairs of all questions are pooled, so that every pair has the same weight. In a mean of one AUROC per question,
    a question with one pair would have the weight of a question with a thousand.

    Args:
        confidence: float64 [n] in [0, 1].
        correct: bool [n].
        question_keys: Strings or integers [n]; equal keys mean the same question.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows, or no question has both a correct and a wrong row.
    """
    scores, labels = checked(confidence, correct)
    group = checked_groups(question_keys, name="question_keys")
    same_length(confidence=scores, question_keys=group)
    wins, pairs = _concordance_within(scores, labels, group)
    if pairs == 0:
        raise UndefinedMetricError("no question has both a correct and a wrong row")
    return wins / pairs


def _by_level(scores: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    """Return how many correct and how many wrong rows have each distinct confidence, from the lowest, int [k] each."""
    values, level = np.unique(scores, return_inverse=True)
    return [np.bincount(level[kind], minlength=len(values)) for kind in (labels, ~labels)]


def _concordance(scores: np.ndarray, labels: np.ndarray) -> tuple[float, int]:
    """Return the pairs in which the correct row has more confidence (a tie counts 1/2), and all pairs; both exact."""
    right, wrong = np.sort(scores[labels]), np.sort(scores[~labels])  # a search for sorted values is ten times as fast
    below, through = np.searchsorted(wrong, right, side="left"), np.searchsorted(wrong, right, side="right")
    return int(below.sum() + through.sum()) / 2, len(right) * len(wrong)


def _concordance_within(scores: np.ndarray, labels: np.ndarray, group: np.ndarray) -> tuple[float, int]:
    """Return the sums over groups (int [n]) of what `_concordance` counts: multiples of 1/2, so exact."""
    # A block is the rows of one group with one confidence. Blocks are sorted by group, then by confidence.
    values, level = np.unique(scores, return_inverse=True)
    keys, block = np.unique(group * len(values) + level, return_inverse=True)
    right, wrong = (np.bincount(block, weights=kind, minlength=len(keys)) for kind in (labels, ~labels))
    starts = np.flatnonzero(np.diff(keys // len(values), prepend=-1))  # the first block of each group
    below = np.cumsum(wrong) - wrong
    below -= np.repeat(below[starts], np.diff(starts, append=len(keys)))
    pairs = np.add.reduceat(right, starts) * np.add.reduceat(wrong, starts)
    return float((right * (below + wrong / 2)).sum()), int(pairs.sum())

"""Accuracy of the actor's answers: the share that is correct."""

import numpy as np
import numpy.typing as npt

from dualread.evaluation.metrics._checks import checked_correct, not_empty

__all__ = ["accuracy"]


def accuracy(correct: npt.ArrayLike) -> float:
    """Return the share of correct rows.

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

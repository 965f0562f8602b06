"""Selective prediction: how wrong are the answers that confidence would keep?"""

import numpy as np
import numpy.typing as npt

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics._checks import checked, checked_confidence, not_empty

HIGH_CONFIDENCE = 0.9


def aurc(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Return the area under the risk-coverage curve, (1/n) * sum over k = 1..n of the risk of the k most confident.

    In [0, 1], lower is better. Rows of equal confidence have no order, so the risk at a k inside a tied block is
    its expectation over all orders of the block; a constant confidence has exactly the error rate. With M rows and E
    errors above a block of m rows and e errors, k = M + j keeps E + e j / m errors in expectation, and
        sum over j = 1..m of (E + e j / m) / (M + j)  =  e + (E - e M / m) (H[M + m] - H[M]),
    with H the harmonic numbers.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows.

    References:
        Geifman and El-Yaniv, Selective Classification for Deep Neural Networks, 2017 (the curve without ties).
    """
    scores, labels = checked(confidence, correct)
    _, level = np.unique(-scores, return_inverse=True)
    size = np.bincount(level)
    errors = np.bincount(level, weights=~labels)
    size_above = np.cumsum(size) - size
    errors_above = np.cumsum(errors) - errors
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, len(scores) + 1))])
    step = harmonic[size_above + size] - harmonic[size_above]
    return float(np.sum(errors + (errors_above - errors * size_above / size) * step) / len(scores))


def risks(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> np.ndarray:
    """Return the risk-coverage curve, float64 [n]: at k - 1 the error rate of the k most confident rows.

    In [0, 1], lower is better. Inside a tied block it is the expectation over all orders of the block, so that the mean
    of the curve is `aurc`.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows.
    """
    scores, labels = checked(confidence, correct)
    _, level = np.unique(-scores, return_inverse=True)
    size = np.bincount(level)
    errors = np.bincount(level, weights=~labels)
    expected = np.cumsum(np.repeat(errors / size, size))  # a row of a block is wrong as often as the block is
    return expected / np.arange(1, len(scores) + 1)


def hce(confidence: npt.ArrayLike, correct: npt.ArrayLike, *, threshold: float = HIGH_CONFIDENCE) -> float:
    """Return the high-confidence error rate: the share of all rows that are wrong with confidence >= `threshold`.

    In [0, 1], lower is better. The denominator is the whole set, not the confident part of it, so a method that is
    never confident has 0. HCE@0.9 is the default.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows.
    """
    scores, labels = checked(confidence, correct)
    return int(np.count_nonzero((scores >= threshold) & ~labels)) / len(scores)


def threshold(confidence: npt.ArrayLike, correct: npt.ArrayLike, *, target_risk: float) -> float:
    """Return the smallest confidence c such that, of the rows with confidence >= c, at most `target_risk` are wrong.

    In [0, 1], and one of the confidences given: rows of equal confidence are kept or deferred together. The smallest of
    all that qualify keeps the most rows, even where a larger one does not qualify.

    Raises:
        ValueError: An input is malformed, or the target is not in [0, 1].
        UndefinedMetricError: There are no rows, or every threshold keeps more errors than that.
    """
    if not 0.0 <= target_risk <= 1.0:
        raise ValueError(f"target_risk: {target_risk}, expected a share of errors in [0, 1].")
    scores, labels = checked(confidence, correct)
    levels, level = np.unique(-scores, return_inverse=True)
    # A quotient of counts is rounded as the decimal it equals, so that 29 of 100 reach .29; a product need not be.
    risk = np.cumsum(np.bincount(level, weights=~labels)) / np.cumsum(np.bincount(level))
    reached = np.flatnonzero(risk <= target_risk)
    if len(reached) == 0:
        raise UndefinedMetricError(
            f"no threshold has a risk of {target_risk:g} or less; the lowest is {risk.min():.3f}"
        )
    return float(-levels[reached[-1]])


def coverage(confidence: npt.ArrayLike, threshold: float) -> float:
    """Return the share of rows with confidence >= `threshold`, those that are answered and not deferred.

    In [0, 1], higher is better at equal risk.

    Raises:
        ValueError: The input is malformed.
        UndefinedMetricError: There are no rows.
    """
    scores = checked_confidence(confidence)
    not_empty(scores)
    return int(np.count_nonzero(scores >= threshold)) / len(scores)


def kept_risk(confidence: npt.ArrayLike, correct: npt.ArrayLike, *, threshold: float) -> float:
    """Return the error rate of the rows with confidence >= `threshold`.

    In [0, 1], lower is better.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows, or none is kept.
    """
    scores, labels = checked(confidence, correct)
    kept = scores >= threshold
    if not kept.any():
        raise UndefinedMetricError(f"no confidence reaches the threshold {threshold:.6g}")
    return int(np.count_nonzero(kept & ~labels)) / int(np.count_nonzero(kept))

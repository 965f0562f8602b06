"""Selective prediction: how many of the answers that are kept for their confidence are wrong?"""

import numpy as np
import numpy.typing as npt

from dualread.errors import UndefinedMetricError
from dualread.evaluation.decimals import as_number
from dualread.evaluation.metrics._checks import both_classes, checked, checked_confidence, not_empty

HIGH_CONFIDENCE = 0.9


def aurc(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Return the area under the risk-coverage curve: the mean over k = 1..n of the risk of the k most confident rows.

    In [0, 1], lower is better. The risk is the error rate. Rows of equal confidence have no order: for a k inside a
    block of equal confidences, the risk is its expectation over all orders of the block. A constant confidence thus has
    exactly the error rate. With M rows and E errors above a block of m rows and e errors, the k = M + j most
    confident rows have E + e j / m errors in expectation, and
        sum over j = 1..m of (E + e j / m) / (M + j)  =  e + (E - e M / m) (H[M + m] - H[M]),
    with H the harmonic numbers.

    Args:
        confidence: float64 [n] in [0, 1].
        correct: bool [n].

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


def auarc(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Return the area under the accuracy-rejection curve: the mean over k = 1..n of the k most confident's accuracy.

    In [0, 1], higher is better. It is 1 - `aurc`, ties included, so that a constant confidence has exactly the
    accuracy. Arguments and errors are those of `aurc`.

    References:
        Nadeem, Zucker and Hanczar, Accuracy-Rejection Curves (ARCs) for Comparing Classification Methods with a Reject
        Option, 2009.
    """
    return 1.0 - aurc(confidence, correct)


def e_aurc(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Return the excess AURC: `aurc` minus that of the best order, in which all wrong rows come last.

    In [0, 1], lower is better; 0 if no wrong row has as much confidence as a correct one. Unlike AURC, it does not grow
    with the error rate alone. With n rows and E errors, the best order has the AURC
    (E - (n - E) (H[n] - H[n - E])) / n, with H the harmonic numbers. This is exact; the paper uses its limit for many
    rows, r + (1 - r) log(1 - r) with r = E / n. Where all rows are of one class, every order is the best one, and the
    value is 0. Arguments and errors are those of `aurc`.

    References:
        Geifman, Uziel and El-Yaniv, Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers, 2019.
    """
    _, labels = checked(confidence, correct)
    return max(0.0, aurc(confidence, correct) - _best_aurc(labels))


def prediction_rejection_ratio(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Return the prediction rejection ratio: how far rejection by confidence is from chance to the best order.

    (r - AURC) / (r - AURC of the best order), with r the error rate, which is the AURC of a constant confidence. At
    most 1, higher is better; negative where rejection by confidence is worse than by chance. Rows are rejected one by
    one up to the last, which LM-Polygraph calls a largest rejection of 1; its papers stop at one half. Ties share their
    errors evenly, as in `aurc`, where that library takes the order of the rows. Arguments and errors are those of
    `auroc`.

    References:
        Malinin, Mlodozeniec and Gales, Ensemble Distribution Distillation, 2020 (of all rows, where an oracle answers
        the rejected ones); Vashurin et al., Benchmarking Uncertainty Quantification Methods for Large Language Models
        with LM-Polygraph, 2025 (of the rows that are kept, as here).
    """
    _, labels = checked(confidence, correct)
    both_classes(labels)
    by_chance = int(np.count_nonzero(~labels)) / len(labels)
    return min(1.0, (by_chance - aurc(confidence, correct)) / (by_chance - _best_aurc(labels)))


def _best_aurc(labels: np.ndarray) -> float:
    """Return the AURC of the order in which all wrong rows come last."""
    n, n_right = len(labels), int(np.count_nonzero(labels))
    harmonic = float(np.sum(1.0 / np.arange(n_right + 1, n + 1)))
    return (n - n_right - n_right * harmonic) / n


def risks(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> np.ndarray:
    """Return the risk-coverage curve, float64 [n]: index k - 1 has the error rate of the k most confident rows.

    In [0, 1], lower is better. Inside a block of equal confidences it is the expectation over all orders of the block.
    The mean of the curve is `aurc`. Arguments and errors are those of `aurc`.
    """
    scores, labels = checked(confidence, correct)
    _, level = np.unique(-scores, return_inverse=True)
    size = np.bincount(level)
    errors = np.bincount(level, weights=~labels)
    expected = np.cumsum(np.repeat(errors / size, size))  # every row of a block has the block's error rate
    return expected / np.arange(1, len(scores) + 1)


def hce(confidence: npt.ArrayLike, correct: npt.ArrayLike, *, threshold: float = HIGH_CONFIDENCE) -> float:
    """Return the high-confidence error rate: the share of all rows that are wrong with confidence >= `threshold`.

    In [0, 1], lower is better. The denominator is the number of all rows and not of confident ones, so that a method
    that is never confident has 0.

    Args:
        confidence: float64 [n] in [0, 1].
        correct: bool [n].
        threshold: The smallest confidence that counts as high; 0.9 gives HCE@0.9.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows.
    """
    scores, labels = checked(confidence, correct)
    return int(np.count_nonzero((scores >= as_number(threshold, name="threshold")) & ~labels)) / len(scores)


def threshold(confidence: npt.ArrayLike, correct: npt.ArrayLike, *, target_risk: float) -> float:
    """Return the smallest confidence c for which the rows with confidence >= c have an error rate <= `target_risk`.

    The result is one of the confidences, because rows of equal confidence are kept or deferred together. It keeps the
    most rows. A larger threshold may nevertheless have a higher error rate than the target.

    Args:
        confidence: float64 [n] in [0, 1].
        correct: bool [n].
        target_risk: Largest error rate of the kept rows, in [0, 1].

    Raises:
        ValueError: An input is malformed, or the target is not in [0, 1].
        UndefinedMetricError: There are no rows, or the error rate exceeds the target at every threshold.
    """
    target_risk = as_number(target_risk, name="target_risk")
    if not 0.0 <= target_risk <= 1.0:
        raise ValueError(f"target_risk: {target_risk}, expected a share of errors in [0, 1].")
    scores, labels = checked(confidence, correct)
    levels, level = np.unique(-scores, return_inverse=True)
    # The quotient 29 / 100 is the same float as .29. The product .29 * 100 is less than 29.
    risk = np.cumsum(np.bincount(level, weights=~labels)) / np.cumsum(np.bincount(level))
    reached = np.flatnonzero(risk <= target_risk)
    if len(reached) == 0:
        raise UndefinedMetricError(
            f"no threshold has a risk of {target_risk:g} or less; the lowest is {risk.min():.3f}"
        )
    return float(-levels[reached[-1]])


def coverage(confidence: npt.ArrayLike, threshold: float) -> float:
    """Return the share of rows with confidence >= `threshold`, which are kept and not deferred.

    In [0, 1]; at equal risk, higher is better.

    Args:
        confidence: float64 [n] in [0, 1].
        threshold: The smallest confidence that is kept.

    Raises:
        ValueError: The input is malformed.
        UndefinedMetricError: There are no rows.
    """
    scores = checked_confidence(confidence)
    not_empty(scores)
    return int(np.count_nonzero(scores >= as_number(threshold, name="threshold"))) / len(scores)


def kept_risk(confidence: npt.ArrayLike, correct: npt.ArrayLike, *, threshold: float) -> float:
    """Return the error rate of the rows with confidence >= `threshold`.

    In [0, 1], lower is better.

    Args:
        confidence: float64 [n] in [0, 1].
        correct: bool [n].
        threshold: The smallest confidence that is kept.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows, or no row is kept.
    """
    scores, labels = checked(confidence, correct)
    kept = scores >= as_number(threshold, name="threshold")
    if not kept.any():
        raise UndefinedMetricError(f"no confidence reaches the threshold {threshold:.6g}")
    return int(np.count_nonzero(kept & ~labels)) / int(np.count_nonzero(kept))

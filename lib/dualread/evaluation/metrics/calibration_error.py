"""Calibration error: are seven in ten answers with a confidence of 0.7 correct?"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy  # loads its submodules when they are first used, so that importing this module is fast

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics._checks import both_classes, checked, checked_confidence

N_BINS = 15


def bins(confidence: npt.ArrayLike, *, n_bins: int = N_BINS) -> np.ndarray:
    """Return the bin index of every row, int64 [n]: bin k is [k / n_bins, (k + 1) / n_bins), and the last includes 1.

    Confidences are compared with the edges k / n_bins, divided in float64. The edge 3/15 and the confidence 0.2 are
    then equal, and 0.2, 0.4, 0.6 and 0.8 are the lowest values of their bins. A product c * n_bins would be rounded.
    Other libraries use bins (low, high], which changes published numbers.

    Args:
        confidence: float64 [n] in [0, 1].
        n_bins: Number of bins of equal width.

    Raises:
        ValueError: `confidence` is malformed.
    """
    inner_edges = np.arange(1, n_bins) / n_bins
    return np.searchsorted(inner_edges, checked_confidence(confidence), side="right").astype(np.int64)


def ece(confidence: npt.ArrayLike, correct: npt.ArrayLike, *, n_bins: int = N_BINS) -> float:
    """Return the expected calibration error: the sum over bins of (rows / n) * |mean correct - mean confidence|.

    In [0, 1], lower is better. The bins are those of `bins`; an empty bin adds nothing.

    Args:
        confidence: float64 [n] in [0, 1].
        correct: bool [n].
        n_bins: Number of bins of equal width.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows.
    """
    scores, labels = checked(confidence, correct)
    order = np.argsort(scores, kind="stable")  # so that the sums below do not depend on the order of the rows
    index = bins(scores[order], n_bins=n_bins)
    confident = np.bincount(index, weights=scores[order], minlength=n_bins)
    right = np.bincount(bins(scores, n_bins=n_bins), weights=labels, minlength=n_bins)
    return float(np.abs(right - confident).sum() / len(scores))


def equal_mass_bins(confidence: npt.ArrayLike, *, n_bins: int = N_BINS) -> np.ndarray:
    """Return the bin index of every row, int64 [n], in bins that hold about equally many rows.

    Rows of equal confidence share a bin, so that the order of the rows has no influence. Of n rows, m rows of one
    confidence with M rows below them are in bin floor(n_bins (M + (m - 1) / 2) / n), where their middle is. Without
    ties, the numbers of rows of two bins differ by at most one. A constant confidence fills one bin.

    Args:
        confidence: float64 [n] in [0, 1].
        n_bins: Number of bins; some are empty where ties are many or rows are few.

    Raises:
        ValueError: `confidence` is malformed.
    """
    scores = checked_confidence(confidence)
    _, level = np.unique(scores, return_inverse=True)
    size = np.bincount(level)
    twice_middle = 2 * (np.cumsum(size) - size) + size - 1
    return ((n_bins * twice_middle) // (2 * max(len(scores), 1)))[level].astype(np.int64)


def ece_equal_mass(confidence: npt.ArrayLike, correct: npt.ArrayLike, *, n_bins: int = N_BINS) -> float:
    """Return the expected calibration error over bins that hold about equally many rows (`equal_mass_bins`).

    The sum over bins of (rows / n) * |mean correct - mean confidence|, as `ece`. In [0, 1], lower is better. The bins
    of the paper have equal width; confidences that crowd near 1 then fill one of them. Arguments and errors are those
    of `ece`.

    References:
        Nixon et al., Measuring Calibration in Deep Learning, 2019 (adaptive bins); Roelofs et al., Mitigating Bias in
        Calibration Error Estimation, 2022 (equal mass).
    """
    scores, labels = checked(confidence, correct)
    order = np.lexsort((labels, scores))  # so that the sums below do not depend on the order of the rows
    scores, labels = scores[order], labels[order]
    gaps = np.bincount(equal_mass_bins(scores, n_bins=n_bins), weights=labels - scores, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(scores))


def brier(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Return the Brier score, the mean of (confidence - correct)^2.

    In [0, 1], lower is better. Arguments and errors are those of `auroc`, but that rows of one class have a value.
    """
    scores, labels = checked(confidence, correct)
    return float(np.mean(np.sort((scores - labels) ** 2)))


class BrierParts(NamedTuple):
    """The Brier score is reliability (lower is better) - resolution (higher is better) + uncertainty."""

    reliability: float
    resolution: float
    uncertainty: float


def brier_parts(confidence: npt.ArrayLike, correct: npt.ArrayLike, *, n_bins: int = N_BINS) -> BrierParts:
    """Return the decomposition of the Brier score over the bins of `bins`, which holds exactly for any confidences.

    With n_k of n rows in bin k, their mean confidence c_k, their share o_k of correct rows, and the accuracy o, the
    reliability is the sum of n_k / n (c_k - o_k)^2, the uncertainty o (1 - o), and the resolution the sum of
    n_k / n (o_k - o)^2, minus the variance of confidences within bins, plus twice their covariance with correctness
    there. Where all confidences of a bin are equal, the last two are 0 and it is Murphy's decomposition. As in `ece`,
    whose arguments and errors these are, the reliability contains an error by chance.

    References:
        Murphy, A New Vector Partition of the Probability Score, 1973; Stephenson, Coelho and Jolliffe, Two Extra
        Components in the Brier Score Decomposition, 2008 (the terms within bins).
    """
    scores, labels = checked(confidence, correct)
    order = np.lexsort((labels, scores))  # so that the sums below do not depend on the order of the rows
    scores, labels = scores[order], labels[order].astype(np.float64)
    index = bins(scores, n_bins=n_bins)
    size = np.maximum(np.bincount(index, minlength=n_bins), 1)
    confident, right = (np.bincount(index, values, n_bins) / size for values in (scores, labels))
    accuracy = float(labels.mean())
    distance, within = scores - confident[index], labels - right[index]
    return BrierParts(
        reliability=float(np.mean((confident - right)[index] ** 2)),
        resolution=float(np.mean((right[index] - accuracy) ** 2 - distance**2 + 2.0 * distance * within)),
        uncertainty=accuracy * (1.0 - accuracy),
    )


def log_loss(confidence: npt.ArrayLike, correct: npt.ArrayLike, *, clip: float = 0.0) -> float:
    """Return the log loss, the mean of -log(confidence) of correct rows and -log(1 - confidence) of wrong ones.

    In [0, inf), lower is better; log 2 = .693 is that of a constant confidence of 1/2. With a `clip` in [0, 1/2),
    confidences count as at least `clip` and at most 1 - `clip`; one of 1,000 rows that is wrong with certainty then
    adds .007 with 1e-3, and .035 with 1e-15.

    Raises:
        ValueError: An input is malformed, or `clip` is out of range.
        UndefinedMetricError: There are no rows, or correct rows have a confidence of 0, or wrong ones of 1, so that the
            loss is infinite; these are counted.
    """
    scores, labels = checked(confidence, correct)
    losses = log_losses(scores, labels, clip=clip)
    if n_infinite := int(np.count_nonzero(np.isinf(losses))):
        raise UndefinedMetricError(
            f"the log loss of {n_infinite} of {len(losses)} rows is infinite: confidence 0 and correct, or 1 and wrong"
        )
    return float(np.mean(np.sort(losses)))


def log_losses(scores: np.ndarray, labels: np.ndarray, *, clip: float = 0.0) -> np.ndarray:
    """Return the log loss of each row, float64 [n]; see `log_loss`."""
    if not 0.0 <= clip < 0.5:
        raise ValueError(f"clip: {clip}, expected a number in [0, 0.5).")
    clipped = np.clip(scores, clip, 1.0 - clip)
    with np.errstate(divide="ignore"):
        return -np.where(labels, np.log(clipped), np.log1p(-clipped))


def calibration_in_the_large(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Return a, the maximum-likelihood intercept of P(correct) = sigmoid(a + log-odds of the confidence).

    In log-odds. At 0 the confidence is calibrated on average; a negative value means that it is too high on average.

    Args:
        confidence: float64 [n] in (0, 1).
        correct: bool [n].

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows; all rows are of one class, so that a is infinite; or a confidence is
            exactly 0 or 1, so that its log-odds are infinite. They are not clipped, because a would depend on where.

    References:
        Cox, Two further applications of a model for binary regression, 1958.
    """
    log_odds, labels = _finite_log_odds(confidence, correct)
    return _intercept(log_odds, labels)


def calibration_slope(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Return b, the maximum-likelihood slope of P(correct) = sigmoid(a + b * log-odds of the confidence).

    The slope is 1 for calibrated confidences. A slope below 1 means that confidences are too extreme, a negative slope
    that wrong answers tend to have the higher confidences.

    Args:
        confidence: float64 [n] in (0, 1).
        correct: bool [n].

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows, all rows are of one class, a confidence is exactly 0 or 1, the
            confidence is constant, or it separates correct from wrong rows, so that b is infinite.

    References:
        Cox, Two further applications of a model for binary regression, 1958.
    """
    log_odds, labels = _finite_log_odds(confidence, correct)
    right, wrong = log_odds[labels], log_odds[~labels]
    if log_odds.min() == log_odds.max():
        raise UndefinedMetricError(
            f"the confidence is constant ({float(scipy.special.expit(log_odds[0]))}); it has no slope"
        )
    if wrong.max() <= right.min() or right.max() <= wrong.min():
        raise UndefinedMetricError("the confidence separates correct from wrong rows; the slope is infinite")
    sign = np.where(labels, 1.0, -1.0)

    def derivative(b: float) -> float:
        """Return that of the log-likelihood, with the best intercept for b; it decreases and has one root."""
        line = b * log_odds
        line += _intercept(line, labels)
        weight = scipy.special.expit(line) * scipy.special.expit(-line)
        # With this center, a small error of the intercept has no effect of first order.
        centered = log_odds - (weight * log_odds).sum() / weight.sum()
        return float((centered * sign * scipy.special.expit(-sign * line)).sum())

    end = float(np.copysign(1.0 / log_odds.std(), derivative(0.0)))
    while derivative(end) * end > 0.0:
        end *= 2.0
    return _root(derivative, 0.0, end)


def _intercept(line: np.ndarray, labels: np.ndarray) -> float:
    """Return the a at which the sum of sigmoid(a + line) is the number of correct rows."""
    n, n_correct = len(labels), int(np.count_nonzero(labels))
    # At the lower end the expected number of correct rows is at most 1/2, at the upper end at least n - 1/2.
    margin = float(np.log(2.0 * n))
    low, high = -float(line.max()) - margin, -float(line.min()) + margin
    return _root(lambda a: float(scipy.special.expit(a + line).sum()) - n_correct, low, high)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a function between ends where its signs differ, or where it is 0 (Brent 1973, ch. 4)."""
    # scipy.optimize has the same method, and takes as long to import as all metrics of 20,000 answers to compute.
    a, b, value_a, value_b = low, high, function(low), function(high)
    c, value_c = a, value_a  # the root is between b, the best point so far, and c; a is the last best one
    step = last_step = b - a
    while True:
        if abs(value_c) < abs(value_b):
            a, b, c = b, c, b
            value_a, value_b, value_c = value_b, value_c, value_b
        tolerance, half = 2.0 * np.finfo(float).eps * abs(b) + 5e-14, (c - b) / 2.0
        if np.isnan(value_b):
            raise UndefinedMetricError("the confidences are too extreme: their likelihood cannot be computed")
        if abs(half) <= tolerance or value_b == 0.0:
            return b
        p, q = half, 1.0
        if abs(last_step) >= tolerance and abs(value_a) > abs(value_b):
            ratio = value_b / value_a
            if a == c:  # the line through two points, or else the parabola in y through three
                p, q = 2.0 * half * ratio, 1.0 - ratio
            else:
                u, v = value_a / value_c, value_b / value_c
                p = ratio * (2.0 * half * u * (u - v) - (b - a) * (v - 1.0))
                q = (u - 1.0) * (v - 1.0) * (ratio - 1.0)
            p, q = abs(p), -q if p > 0.0 else q
        if q != 1.0 and 2.0 * p < min(3.0 * half * q - abs(tolerance * q), abs(last_step * q)):
            last_step, step = step, p / q
        else:
            last_step = step = half
        a, value_a = b, value_b
        b += step if abs(step) > tolerance else np.copysign(tolerance, half)
        value_b = function(b)
        if (value_b > 0.0) == (value_c > 0.0):
            c, value_c, step, last_step = a, value_a, b - a, b - a


def _finite_log_odds(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    scores, labels = checked(confidence, correct)
    both_classes(labels)
    if n_infinite := int(np.count_nonzero((scores == 0.0) | (scores == 1.0))):
        raise UndefinedMetricError(
            f"{n_infinite} of {len(scores)} confidences are exactly 0 or 1; their log-odds are infinite"
        )
    order = np.lexsort((labels, scores))  # so that sums do not depend on the order of the rows
    return scipy.special.logit(scores[order]), labels[order]

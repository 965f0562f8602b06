"""Calibration error: does a confidence of 0.7 come true seven times in ten?"""

import numpy as np
import numpy.typing as npt
from scipy.optimize import root_scalar
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from dualread.errors import UndefinedMetricError
from dualread.metrics._checks import both_classes, checked, checked_confidence

N_BINS = 15


def bins(confidence: npt.ArrayLike, *, n_bins: int = N_BINS) -> np.ndarray:
    """Return the bin index of every row, int64 [n]: bin k is [k / n_bins, (k + 1) / n_bins), the last one closed.

    The row is compared with the edges k / n_bins as float64 divides them, never with floor(c * n_bins): the product
    rounds, the edge 3/15 and the confidence 0.2 are the same float64. So 0.2, 0.4, 0.6 and 0.8 open their bins, and 1.0
    belongs to the last bin. Libraries differ here ((lo, hi] is as common) and it moves published numbers.

    Raises:
        ValueError: `confidence` is malformed.
    """
    inner_edges = np.arange(1, n_bins) / n_bins
    return np.searchsorted(inner_edges, checked_confidence(confidence), side="right").astype(np.int64)


def ece(confidence: npt.ArrayLike, correct: npt.ArrayLike, *, n_bins: int = N_BINS) -> float:
    """Return the expected calibration error: sum over bins of (rows / n) * |mean correct - mean confidence|.

    In [0, 1], lower is better. Bins as in `bins`; an empty bin adds nothing.

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


def brier(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Return the Brier score, the mean of (confidence - correct)^2; in [0, 1], lower is better.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows.
    """
    scores, labels = checked(confidence, correct)
    return float(np.mean(np.sort((scores - labels) ** 2)))


def calibration_in_the_large(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Return a, the maximum-likelihood intercept of P(correct) = sigmoid(a + log-odds of the confidence).

    In log-odds; 0 is calibrated on average, a negative value says that confidence is too high on average.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows or one class only (a is infinite), or a confidence is exactly 0 or 1
            (its log-odds are infinite, and clipping them would make up the answer).

    References:
        Cox, Two further applications of a model for binary regression, 1958.
    """
    log_odds, labels = _finite_log_odds(confidence, correct)
    n, n_correct = len(labels), int(np.count_nonzero(labels))
    # At the lower end the expected number of correct rows is at most 1/2, at the upper end at least n - 1/2.
    margin = np.log(2.0 * n)
    low, high = -log_odds.max() - margin, -log_odds.min() + margin
    found = root_scalar(
        lambda a: expit(a + log_odds).sum() - n_correct, bracket=(low, high), method="brentq", xtol=1e-13, rtol=1e-14
    )
    return float(found.root)


def calibration_slope(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Return b, the maximum-likelihood slope of P(correct) = sigmoid(a + b * log-odds of the confidence).

    1 is calibrated, a value below 1 says that confidence is too extreme, a negative value that it is upside down.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows or one class only, a confidence is exactly 0 or 1, the confidence is
            constant, or it separates the classes (b is infinite).

    References:
        Cox, Two further applications of a model for binary regression, 1958.
    """
    log_odds, labels = _finite_log_odds(confidence, correct)
    right, wrong = log_odds[labels], log_odds[~labels]
    if log_odds.min() == log_odds.max():
        raise UndefinedMetricError(f"the confidence is constant ({float(expit(log_odds[0]))}); no slope")
    if wrong.max() <= right.min() or right.max() <= wrong.min():
        raise UndefinedMetricError("the confidence separates correct from wrong rows; the slope is infinite")
    scale = log_odds.std()
    standardized = ((log_odds - log_odds.mean()) / scale)[:, np.newaxis]
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    return float(model.fit(standardized, labels).coef_[0, 0] / scale)


def _finite_log_odds(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    scores, labels = checked(confidence, correct)
    both_classes(labels)
    if n_infinite := int(np.count_nonzero((scores == 0.0) | (scores == 1.0))):
        raise UndefinedMetricError(f"{n_infinite} of {len(scores)} confidences are exactly 0 or 1; no finite log-odds")
    order = np.lexsort((labels, scores))  # so that sums do not depend on the order of the rows
    return logit(scores[order]), labels[order]

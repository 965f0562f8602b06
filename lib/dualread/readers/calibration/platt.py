"""Platt scaling with a positive slope: confidence = sigmoid(slope * score + intercept)."""

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualread.readers.calibration.log_odds import CalibrationError, checked_fit_input, log_odds, sigmoid

# The slope, per standard deviation of the scores, that replaces a slope <= 0. It keeps the order of the scores, and all
# confidences are practically the base rate.
SMALLEST_SLOPE = 1e-8


@dataclass(frozen=True, kw_only=True)
class Platt:
    """A fitted Platt map.

    Attributes:
        slope: The slope, > 0, per unit of the score.
        intercept: The intercept in log-odds.
        clipped: Whether the fit gave a slope <= 0, so that the map is the base rate instead.
    """

    slope: float
    intercept: float
    clipped: bool

    def confidence(self, score: npt.ArrayLike) -> np.ndarray:
        """Return sigmoid(slope * score + intercept) as float64, of the shape of `score`."""
        return sigmoid(self.slope * np.asarray(score, dtype=np.float64) + self.intercept)


def fit_platt(score: npt.ArrayLike, correct: npt.ArrayLike) -> Platt:
    """Fit an unpenalized logistic regression of `correct` on `score` with a positive slope.

    By contract a higher score means more confidence; a negative slope, fitted on few rows, would reverse a method's
    order. Where the fitted slope is not positive, or the score is constant, the best map with a slope >= 0 is the base
    rate. The slope is then SMALLEST_SLOPE per standard deviation of the scores, and `clipped` is true. Distinct scores
    keep distinct confidences even if they differ by only 2e-7, as those of semantic uncertainty with K = 32 may.

    Args:
        score: float64 [n], finite, on any scale; higher means more confident.
        correct: bool [n].

    Returns:
        The fitted map.

    Raises:
        ValueError: An input is malformed.
        CalibrationError: There are no rows, all rows are of one class, or every correct row has a higher score than
            every wrong one, so that the slope would be infinite; or the fit does not converge.

    References:
        Platt, Probabilistic Outputs for Support Vector Machines, 1999 (without its smoothing of the labels).
    """
    values, labels = checked_fit_input(score, correct, what="fit_platt")
    mean, scale = float(values.mean()), float(values.std())
    right, wrong = values[labels], values[~labels]
    # Values that differ by so little that the squares are 0 have a standard deviation of 0, too.
    if values.min() == values.max() or scale == 0.0 or right.max() <= wrong.min():
        return _base_rate(labels, mean, scale)
    if wrong.max() <= right.min():
        raise CalibrationError(
            f"fit_platt: the score separates the {len(right)} correct from the {len(wrong)} wrong rows; the slope "
            "would be infinite. Fit on more rows."
        )
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression  # slow to load, and a fitted map does not need it

    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            model.fit(((values - mean) / scale)[:, np.newaxis], labels)
        except ConvergenceWarning as error:
            raise CalibrationError(f"fit_platt: no convergence on {len(labels)} rows ({error}).") from error
    slope = float(model.coef_[0, 0])
    if slope < SMALLEST_SLOPE:
        return _base_rate(labels, mean, scale)
    slope /= scale
    return Platt(slope=slope, intercept=float(np.ravel(model.intercept_)[0]) - slope * mean, clipped=False)


def _base_rate(labels: np.ndarray, mean: float, scale: float) -> Platt:
    slope = SMALLEST_SLOPE / (scale or 1.0)
    return Platt(slope=slope, intercept=float(log_odds(np.mean(labels))) - slope * mean, clipped=True)

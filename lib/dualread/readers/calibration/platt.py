"""Platt scaling with a positive slope: confidence = sigmoid(slope * score + intercept)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualread.readers.calibration.log_odds import CalibrationError, checked_fit_input, log_odds, sigmoid

# Per standard deviation of the scores, in place of a slope that is not positive: scores in order stay in order, and no
# probability moves visibly.
SMALLEST_SLOPE = 1e-8


@dataclass(frozen=True, kw_only=True)
class Platt:
    """A fitted map; `clipped` records that the fit wanted a slope <= 0 and the map is the base rate instead."""

    slope: float
    intercept: float
    clipped: bool

    def confidence(self, score: npt.ArrayLike) -> np.ndarray:
        """Return sigmoid(slope * score + intercept), float64."""
        return sigmoid(self.slope * np.asarray(score, dtype=np.float64) + self.intercept)


def fit_platt(score: npt.ArrayLike, correct: npt.ArrayLike) -> Platt:
    """Fit an unpenalized logistic regression of `correct` on `score`, with the slope held positive.

    A higher score means more confidence by contract, so a negative slope would turn a method upside down on the few
    rows it was fitted on. Where the fitted slope is not positive, or the score is constant, the best map with a
    non-negative slope is the base rate; the slope is then SMALLEST_SLOPE per standard deviation of the scores, and
    `clipped` is true. Distinct scores keep distinct confidences: those of semantic uncertainty up to K = 32, which lie
    as close as 2e-7.

    Args:
        score: float64 [n], any finite scale.
        correct: bool [n].

    Raises:
        ValueError: An input is malformed.
        CalibrationError: There are no rows, rows of one class only, or the score separates the classes in the right
            direction (the slope would be infinite).
    """
    values, labels = checked_fit_input(score, correct, what="fit_platt")
    mean, scale = float(values.mean()), float(values.std())
    right, wrong = values[labels], values[~labels]
    # A spread of 0 is that of values whose differences are too small to be squared.
    if values.min() == values.max() or scale == 0.0 or right.max() <= wrong.min():
        return _base_rate(labels, mean, scale)
    if wrong.max() <= right.min():
        raise CalibrationError(
            f"fit_platt: the score separates the {len(right)} correct from the {len(wrong)} wrong rows; the slope "
            "would be infinite. Fit on more rows."
        )
    from sklearn.linear_model import LogisticRegression  # it takes a second to load, and a fitted map does without

    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    model.fit(((values - mean) / scale)[:, np.newaxis], labels)
    slope = float(model.coef_[0, 0])
    if slope < SMALLEST_SLOPE:
        return _base_rate(labels, mean, scale)
    slope /= scale
    return Platt(slope=slope, intercept=float(np.ravel(model.intercept_)[0]) - slope * mean, clipped=False)


def _base_rate(labels: np.ndarray, mean: float, scale: float) -> Platt:
    slope = SMALLEST_SLOPE / (scale or 1.0)
    return Platt(slope=slope, intercept=float(log_odds(np.mean(labels))) - slope * mean, clipped=True)

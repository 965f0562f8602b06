"""Temperature scaling: one scalar T, confidence = sigmoid(log-odds / T) (DualRead, eq:branch_calibration)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualread.readers.calibration.log_odds import checked_fit_input, mean_cross_entropy, sigmoid

BOUNDS = (0.05, 20.0)


@dataclass(frozen=True, kw_only=True)
class Temperature:
    """A fitted temperature.

    Attributes:
        value: T, in [0.05, 20].
        at_bound: Whether T is a bound of the search, so that the minimum is there or beyond.
    """

    value: float
    at_bound: bool


def fit_temperature(log_odds: npt.ArrayLike, correct: npt.ArrayLike) -> Temperature:
    """Return the T in [0.05, 20] with the lowest mean binary cross-entropy of sigmoid(log_odds / T).

    It is found by a bounded search over log T. The loss is convex in 1/T, so that its slope at a bound tells whether
    the minimum is at or beyond this bound; a bounded search alone would stop a little before it. If all log-odds are 0,
    every temperature gives the confidence 0.5, and T is 1 by convention.

    Args:
        log_odds: float64 [n], uncalibrated and finite.
        correct: bool [n].

    Returns:
        The temperature.

    Raises:
        ValueError: An input is malformed.
        CalibrationError: There are no rows, or all rows are of one class.

    References:
        Guo et al., On Calibration of Modern Neural Networks, 2017.
    """
    values, labels = checked_fit_input(log_odds, correct, what="fit_temperature")
    if not values.any():
        return Temperature(value=1.0, at_bound=False)
    low, high = BOUNDS
    if _slope_in_inverse(values, labels, 1.0 / high) >= 0.0:
        return Temperature(value=high, at_bound=True)
    if _slope_in_inverse(values, labels, 1.0 / low) <= 0.0:
        return Temperature(value=low, at_bound=True)
    from scipy.optimize import minimize_scalar

    minimum = minimize_scalar(
        lambda log_t: mean_cross_entropy(values / np.exp(log_t), labels),
        bounds=(np.log(low), np.log(high)),
        method="bounded",
        options={"xatol": 1e-10, "maxiter": 1000},
    )
    return Temperature(value=float(np.exp(minimum.x)), at_bound=False)


def _slope_in_inverse(values: np.ndarray, labels: np.ndarray, inverse: float) -> float:
    """Return the derivative of the mean cross-entropy with respect to 1/T, at 1/T = `inverse`."""
    return float(np.mean(values * (sigmoid(values * inverse) - labels)))

"""Temperature scaling: one scalar T, confidence = sigmoid(log-odds / T) (DualRead, eq:branch_calibration)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualread.readers.calibration.log_odds import checked_fit_input, mean_cross_entropy, sigmoid

BOUNDS = (0.05, 20.0)


@dataclass(frozen=True, kw_only=True)
class Temperature:
    """A fitted temperature, and whether it is a bound of the search rather than a minimum inside it."""

    value: float
    at_bound: bool


def fit_temperature(log_odds: npt.ArrayLike, correct: npt.ArrayLike) -> Temperature:
    """Return the T in [0.05, 20] with the least mean binary cross-entropy of sigmoid(log_odds / T).

    A bounded one-dimensional search over log T. The loss is convex in 1/T, so its slope at a bound tells exactly
    whether the minimum lies at or beyond that bound; a bounded search alone would stop a little inside it. Log-odds
    that are all zero give 0.5 at every temperature: T = 1 then, by convention.

    Args:
        log_odds: float64 [n], uncalibrated, finite.
        correct: bool [n].

    Raises:
        ValueError: An input is malformed.
        CalibrationError: There are no rows, or rows of one class only.
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

    found = minimize_scalar(
        lambda log_t: mean_cross_entropy(values / np.exp(log_t), labels),
        bounds=(np.log(low), np.log(high)),
        method="bounded",
        options={"xatol": 1e-10, "maxiter": 1000},
    )
    return Temperature(value=float(np.exp(found.x)), at_bound=False)


def _slope_in_inverse(values: np.ndarray, labels: np.ndarray, inverse: float) -> float:
    """Return the derivative of the mean cross-entropy by 1/T at `inverse`."""
    return float(np.mean(values * (sigmoid(values * inverse) - labels)))

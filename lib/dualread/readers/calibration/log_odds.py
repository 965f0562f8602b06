"""Log-odds arithmetic in float64, accurate near 0 and 1, and the error of a calibration map that cannot be fitted."""

import numpy as np
import numpy.typing as npt
import scipy  # loads its submodules when they are first used

from dualread.errors import UnfittedError

LARGEST = 1e100  # the squares of larger scores would overflow


class CalibrationError(UnfittedError, ValueError):
    """A calibration map cannot be fitted on this input; the message says why."""


def sigmoid(log_odds: npt.ArrayLike) -> np.ndarray:
    """Return 1 / (1 + exp(-log_odds)) as float64; exactly 1 above about 37, exactly 0 below about -745."""
    return scipy.special.expit(np.asarray(log_odds, dtype=np.float64))


def log_odds(probability: npt.ArrayLike) -> np.ndarray:
    """Return log(p / (1 - p)) as float64: -inf at 0, +inf at 1, without clipping; other p are a ValueError."""
    values = np.asarray(probability, dtype=np.float64)
    if not ((values >= 0.0) & (values <= 1.0)).all():
        bad = values[~((values >= 0.0) & (values <= 1.0))]
        raise ValueError(
            f"probability: {len(bad)} of {values.size} values are NaN or outside [0, 1], such as {bad[0]}."
        )
    return scipy.special.logit(values)


def mean_cross_entropy(log_odds: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """Return the mean binary cross-entropy in nats, from the log-odds: mean of softplus(l) - z l.

    It is computed as softplus(-l) where z = 1 (correct) and softplus(l) where z = 0. This needs neither a subtraction
    nor a probability, which would round.
    """
    values = np.asarray(log_odds, dtype=np.float64)
    return float(np.mean(np.logaddexp(0.0, np.where(np.asarray(correct, dtype=np.bool_), -values, values))))


def checked_fit_input(score: npt.ArrayLike, correct: npt.ArrayLike, *, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Return scores (float64 [n]) and labels (bool [n]), sorted so that a fit does not depend on the order of rows.

    Raises:
        ValueError: The shapes differ, or `correct` is not boolean.
        CalibrationError: There are no rows, all rows are of one class, so that the best map would be infinite, or a
            score is not finite or beyond +-1e100.
    """
    values, labels = np.asarray(score, dtype=np.float64), np.asarray(correct)
    if values.ndim != 1 or values.shape != labels.shape:
        raise ValueError(f"{what}: shapes {values.shape} and {labels.shape}; expected [n] and [n].")
    if len(values) == 0:
        raise CalibrationError(f"{what}: there are no rows to fit on. Give the partition some questions.")
    if labels.dtype != np.bool_:
        raise ValueError(f"{what}: correct has dtype {labels.dtype}, expected bool.")
    if not np.isfinite(values).all():
        raise CalibrationError(
            f"{what}: {np.count_nonzero(~np.isfinite(values))} of {len(values)} values are not finite."
        )
    if (size := np.abs(values).max()) > LARGEST:
        raise CalibrationError(f"{what}: a value is as large as {size:.1e}; expected none beyond {LARGEST:.0e}.")
    if labels.all() or not labels.any():
        kind = "correct" if labels.all() else "wrong"
        raise CalibrationError(f"{what}: all {len(labels)} rows are {kind}. A fit needs correct and wrong answers.")
    order = np.lexsort((labels, values))
    return values[order], labels[order]

"""95% intervals and p-values from an estimate, its variance, and a t distribution."""

from math import expm1, log, sqrt

import scipy  # loads its submodules when they are first used

from dualread.evaluation.statistics.jackknife import Variance

__all__ = ["difference_interval", "difference_p_value", "logit_interval", "smallest_p_value"]

_TAIL = 0.025

Limits = tuple[float, float] | None


def logit_interval(
    estimate: float, variance: Variance, *, low: float = 0.0, high: float = 1.0, tail: float = _TAIL
) -> Limits:
    """Return the interval of a value in [low, high], such as a share; it always contains its estimate.

    The interval is symmetric on the logit of the position between low and high, and misses on either side with the
    probability `tail`. Where nothing varies, it is that of `_unvaried`.

    Returns:
        The two ends; None if the variance has no degrees of freedom, because most rows have one image on a side.
    """
    if variance.df == 0.0:
        return None
    if variance.value == 0.0 or not low < estimate < high:
        return _unvaried(estimate, variance.n, low, high, tail)
    share, width = (estimate - low) / (high - low), high - low
    logit = log(share / (1.0 - share))
    half = variance.quantile(tail) * sqrt(variance.value) / width / (share * (1.0 - share))
    ends = (low + width * float(scipy.special.expit(logit + step)) for step in (-half, half))
    below, above = ends
    return min(below, estimate), max(above, estimate)


def difference_interval(estimate: float, variance: Variance, *, low: float = -1.0, high: float = 1.0) -> Limits:
    """Return the interval of a difference in [low, high]: the estimate with t standard errors on either side.

    Where nothing varies, it is that of `_unvaried`. None as for `logit_interval`.
    """
    if variance.df == 0.0:
        return None
    if variance.value == 0.0:
        return _unvaried(estimate, variance.n, low, high)
    half = variance.quantile(_TAIL) * sqrt(variance.value)
    return max(low, estimate - half), min(high, estimate + half)


def difference_p_value(estimate: float, variance: Variance, carriers: int) -> float | None:
    """Return the two-sided p-value of the hypothesis "no difference", in (0, 1]; None without degrees of freedom.

    Args:
        estimate: The difference.
        variance: Its variance.
        carriers: Number of images that carry a difference, see `smallest_p_value`.
    """
    if variance.df == 0.0:
        return None
    if estimate == 0.0:
        return 1.0
    smallest = smallest_p_value(carriers)
    if variance.value == 0.0:
        return smallest
    p = 2.0 * variance.tail(abs(estimate) / sqrt(variance.value))
    return min(1.0, max(p, smallest))


def smallest_p_value(carriers: int) -> float:
    """Return 2**(1 - n), the p-value of the exact sign test if all n images favour the same method; at most 1."""
    return min(1.0, 2.0 ** (1 - carriers))


def _unvaried(estimate: float, n: float, low: float, high: float, tail: float = _TAIL) -> tuple[float, float]:
    """Return the interval of a mean of `n` independent values that are all equal."""
    # Of all values in the population, a share of at most b may be others, where (1 - b)**n = tail. They may all be at
    # `low`, or all at `high`. At an end of the scale this is the interval of Clopper and Pearson.
    share = -expm1(log(tail) / n)
    return estimate - share * (estimate - low), estimate + share * (high - estimate)

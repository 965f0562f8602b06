"""Replicates with the spread that few images call for: they keep the order of the bootstrap, and get other values.

Percentiles of a bootstrap cover too rarely where few images hold wrong (or right) answers: the replicates vary too
little, and around a value near 0 or 1 they vary to the wrong side. The replicates here are spread around the estimate
as Student's t on the logit. Since every replicate stays at its place in the order, two methods can still be subtracted
replicate by replicate. A metric without an upper end is spread on the logarithm.
"""

from collections.abc import Callable

import numpy as np
import scipy  # loads its submodules when they are first used

from dualread.evaluation.statistics.clusters import Clusters
from dualread.evaluation.statistics.proportion import ALPHA

# Replicates that differ by less differ by rounding alone.
_DIGITS = 12
_ROUNDED = 1e-9  # by which rounding may move an estimate beyond 0 or 1
# With fewer images, nothing is known of what the rarer kind of answer would add to a mean.
_FEWEST_IMAGES = 5
# With fewer, 95% of the right answers are all of them, and resamples do not say how far their lowest confidence varies.
_FEWEST_AT_TPR = 20

# From the replicates of a metric, its value on the images themselves, and these images with the right answers to each,
# to the replicates with the spread that they call for; with a probability of not covering, to the ends of an interval.
Spread = Callable[[np.ndarray, float, Clusters, float | None], np.ndarray]


def spread_of_ranks(
    replicates: np.ndarray, estimate: float, images: Clusters, alpha: float | None = None
) -> np.ndarray:
    """Spread AUROC or AURC; of answers that are all right or all wrong, it is undefined or rests on all images."""
    rest_on = images.n_rarer or images.worth
    df = images.df(rest_on - 1.0) if rest_on > 1 else 0.0
    return t_replicates(replicates, estimate, df=df, widening=images.widening, rest_on=rest_on, alpha=alpha)


def spread_at_tpr(replicates: np.ndarray, estimate: float, images: Clusters, alpha: float | None = None) -> np.ndarray:
    """Spread a metric at a share of the right answers as one of ranks; NaN where few images have right answers."""
    if np.count_nonzero(images.right) < _FEWEST_AT_TPR:
        return np.full(len(replicates) if alpha is None else 2, np.nan)
    return spread_of_ranks(replicates, estimate, images, alpha)


def spread_of_losses(
    replicates: np.ndarray, estimate: float, images: Clusters, alpha: float | None = None
) -> np.ndarray:
    """Spread a mean of losses, whose variance is, like that of a share, mostly a sum of squares of the rarer kind."""
    if images.n_rarer < _FEWEST_IMAGES and estimate not in (0.0, 1.0):
        return binomial_replicates(replicates, estimate, images.worth, alpha)
    df, number = images.df(2.0 * max(images.n_rarer, 1)), images.worth
    return t_replicates(replicates, estimate, df=df, widening=images.widening, rest_on=number, alpha=alpha)


def spread_of_log_losses(
    replicates: np.ndarray, estimate: float, images: Clusters, alpha: float | None = None
) -> np.ndarray:
    """Spread a mean of losses without an upper end; NaN where nothing bounds what further images would add."""
    if images.n_rarer < _FEWEST_IMAGES or estimate == 0.0:
        return np.full(len(replicates) if alpha is None else 2, np.nan)
    like = {"df": images.df(2.0 * images.n_rarer), "widening": images.widening, "rest_on": images.worth}
    return t_replicates(replicates, estimate, **like, has_end=False, alpha=alpha)


def t_replicates(
    replicates: np.ndarray,
    estimate: float,
    *,
    df: float,
    widening: float,
    rest_on: float,
    has_end: bool = True,
    alpha: float | None = None,
) -> np.ndarray:
    """Return replicates whose percentiles are the 95% interval of Student's t on the logit.

    The replicate of rank k of B becomes the value with the logit
        logit(estimate) + z * s * t / 1.96,
    where z is the quantile (k - .5) / B of the normal distribution, s the standard deviation of the replicates, times
    `widening`, divided by estimate * (1 - estimate), and t the 97.5th percentile of Student's t. Equal
    replicates stay equal.

    Two cases have no logit or no deviation. An estimate of 0 or 1 has the replicates (k / B)^(1 / rest_on) away from
    the other end, in the order of the draws; their 2.5th percentile is Clopper and Pearson's for so many images. If
    replicates do not vary at another value, as the AUROC of a constant confidence, they stay.

    Args:
        replicates: Of a metric with values in [0, 1], float64 [B]; NaN where undefined, which stays.
        estimate: The metric's value on the images themselves.
        df: Degrees of freedom of Student's t, > 0; with 0 nothing is known of the variance.
        widening: See `Clusters.widening`.
        rest_on: Number of images on which the variance rests: for AUROC and AURC those with wrong answers, or those
            with right ones, whichever are fewer.
        has_end: Whether no value is above 1; otherwise the logarithm takes the place of the logit.
        alpha: If given, the ends of the interval that does not cover with this probability are returned instead.

    Returns:
        float64 [B], or the two ends; all NaN without degrees of freedom.

    Raises:
        ValueError: The estimate is outside [0, 1], although there is an end.
    """
    rescaled = np.full(len(replicates) if alpha is None else 2, np.nan)
    defined = np.flatnonzero(~np.isnan(replicates))
    if df <= 0.0 or len(defined) == 0:
        return rescaled
    values, n = replicates[defined], len(defined)
    places = defined if alpha is None else np.arange(2)
    if has_end and not -_ROUNDED <= estimate <= 1.0 + _ROUNDED:
        raise ValueError(f"estimate: {estimate}, expected a metric in [0, 1], because others have no logit.")
    if has_end and estimate in (0.0, 1.0):
        q = (np.arange(n) + 0.5) / n if alpha is None else np.array([alpha / 2, 1.0 - alpha / 2])
        distance = q ** (1.0 / rest_on)
        rescaled[places] = distance if estimate == 1.0 else 1.0 - distance
        return rescaled
    deviation = values.std()
    if deviation == 0.0:
        return replicates if alpha is None else values[[0, 0]]
    slope = estimate * (1.0 - estimate) if has_end else estimate
    step = deviation * widening / slope * t_stretch(df, alpha or ALPHA)
    q, place = _quantiles(values, alpha)
    line = step * scipy.special.ndtri(q)
    spread = scipy.special.expit(scipy.special.logit(estimate) + line) if has_end else estimate * np.exp(line)
    rescaled[places] = spread[place]
    return rescaled


def binomial_replicates(
    replicates: np.ndarray, estimate: float, n_images: float, alpha: float | None = None
) -> np.ndarray:
    """Return replicates whose percentiles are the interval of Clopper and Pearson for `n_images` independent rows.

    It is for means of values in [0, 1] that depend on values which too few images have, or none: of all such values
    with the same mean, those that are 0 or 1 vary most. The replicate of rank k of B becomes the quantile
    q = (k - .5) / B: of Beta(x, n - x + 1) below the middle, and of Beta(x + 1, n - x) above it, with x = estimate * n.

    Args:
        replicates: Of a mean of values in [0, 1], float64 [B].
        estimate: The mean on the images themselves, in (0, 1).
        n_images: Number of images of equal size that hold the rows.
        alpha: See `t_replicates`.

    References:
        Hoeffding, Probability Inequalities for Sums of Bounded Random Variables, 1963.
    """
    x, rest = estimate * n_images, (1.0 - estimate) * n_images
    q, place = _quantiles(replicates, alpha)  # there are few different ones where few images have a value
    first, second = np.where(q < 0.5, [[x], [rest + 1.0]], [[x + 1.0], [rest]])
    return scipy.special.betaincinv(first, second, q)[place]


def _quantiles(values: np.ndarray, alpha: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Return (k - .5) / B for the value of rank k, once per distinct value, and where each value finds its own [B]."""
    if alpha is not None:
        return np.array([alpha / 2, 1.0 - alpha / 2]), np.arange(2)
    # Ties have their mean rank.
    _, place, ties = np.unique(np.round(values, _DIGITS), return_inverse=True, return_counts=True)
    return (np.cumsum(ties) - (ties - 1) / 2 - 0.5) / max(len(values), 1), place


def t_stretch(df: float, alpha: float = ALPHA) -> float:
    """Return the quantile 1 - alpha / 2 of Student's t with `df` degrees of freedom, divided by the normal one."""
    level = 1.0 - alpha / 2
    return float(scipy.special.stdtrit(df, level) / scipy.special.ndtri(level))

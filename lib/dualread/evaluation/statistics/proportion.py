"""Intervals of shares, such as accuracy: the interval of Clopper and Pearson, with fewer rows where images correlate.

    >>> share_interval(np.ones(20, dtype=np.bool_), np.arange(20))  # 20 images, one question each, all right
    (0.8315665290169146, 1.0)

A resample of images that are all right is all right, so that percentiles of resamples would say "from 1 to 1".

References:
    Korn and Graubard, Confidence Intervals for Proportions with Small Expected Number of Positive Counts Estimated from
    Survey Data, 1998.
    Clopper and Pearson, The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial, 1934.
"""

import numpy as np
import scipy  # loads its submodules when they are first used

from dualread.evaluation.statistics.clusters import Clusters

__all__ = ["ALPHA", "clopper_pearson", "korn_graubard", "share_interval"]

# The probability that a 95% interval does not cover, both sides together.
ALPHA = 0.05


def share_interval(positive: np.ndarray, cluster: np.ndarray, alpha: float = ALPHA) -> tuple[float, float] | None:
    """Return the interval of the share of rows that are positive, for new images with questions of the same kind.

    With one row per image, it is the interval of Clopper and Pearson, and otherwise `korn_graubard`, with the variance
    of leaving out each image in turn, and the degrees of freedom of `Clusters.df`.

    Args:
        positive: bool [n].
        cluster: int [n], >= 0; the row's image. Rows of one image may depend on each other.
        alpha: The probability that the interval does not cover, both sides together.

    Returns:
        The two ends, in [0, 1]; the share is between them. None if there are no rows, or if most are about one image
        (`clusters.InEffect` says why).
    """
    n = len(positive)
    if n == 0:
        return None
    images = Clusters.of(positive, cluster)
    share = int(np.count_nonzero(positive)) / n
    if images.in_effect.n == n:
        return clopper_pearson(share, n, alpha)
    if images.in_effect.reason:
        return None
    df = images.df(2.0 * max(images.n_rarer, 1))
    return korn_graubard(share, images.variance_of_share(), n=n, n_clusters=images.worth, df=df, alpha=alpha)


def korn_graubard(
    share: float,
    variance: float | None,
    *,
    n: int,
    n_clusters: float,
    df: float | None = None,
    alpha: float = ALPHA,
) -> tuple[float, float]:
    """Return the interval of a share, given its variance over images.

    It is `clopper_pearson` with the effective number of rows
        min(n, n / (variance / (share (1 - share) / (n - 1))) * (t[n - 1] / t[df])^2),
    the number of independent rows that would have the same variance; t[df] is the quantile 1 - alpha / 2 of Student's
    t, and the second factor allows for the variance of the variance.

    Where the variance is 0 or unknown, nothing is known of the correlation within images, and the effective number is
    that of the images. For a share of 0 or 1 this is conservative, because at worst all rows of an image have the same
    value.

    Args:
        share: In [0, 1].
        variance: The variance of the share; None if it is unknown, for instance because there is one image only.
        n: Number of rows, > 0.
        n_clusters: Number of images of equal size that hold them, from 1 to n; or of the fewer ones of two kinds.
        df: Degrees of freedom of the variance, > 0; n_clusters - 1 by default.
        alpha: The probability that the interval does not cover, both sides together.

    Returns:
        The two ends, in [0, 1]; the share is between them.
    """
    if not 0.0 < share < 1.0 or not variance or n_clusters < 2:
        return clopper_pearson(share, n_clusters, alpha)
    size = n * (share * (1.0 - share) / (n - 1)) / variance
    size *= (_t(n - 1, alpha) / _t(n_clusters - 1 if df is None else df, alpha)) ** 2
    return clopper_pearson(share, min(float(n), size), alpha)


def clopper_pearson(share: float, n: float, alpha: float = ALPHA) -> tuple[float, float]:
    """Return the interval of a binomial share.

    The ends are the quantiles alpha / 2 of Beta(x, n - x + 1) and 1 - alpha / 2 of Beta(x + 1, n - x), with
    x = share * n.

    Args:
        share: In [0, 1].
        n: Number of independent rows, > 0; need not be a whole number.
        alpha: The probability that the interval does not cover, both sides together.

    Returns:
        The two ends, in [0, 1]; the lower one is 0 where the share is 0, the upper one 1 where it is 1.
    """
    x, rest = share * n, (1.0 - share) * n
    low = 0.0 if share == 0.0 else float(scipy.special.betaincinv(x, rest + 1.0, alpha / 2))
    high = 1.0 if share == 1.0 else float(scipy.special.betaincinv(x + 1.0, rest, 1.0 - alpha / 2))
    return min(low, share), max(high, share)


def _t(degrees_of_freedom: float, alpha: float) -> float:
    return float(scipy.special.stdtrit(degrees_of_freedom, 1.0 - alpha / 2))

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

__all__ = ["ALPHA", "clopper_pearson", "korn_graubard", "share_interval"]

# The probability that a 95% interval does not cover, both sides together.
ALPHA = 0.05


def share_interval(positive: np.ndarray, cluster: np.ndarray) -> tuple[float, float] | None:
    """Return the 95% interval of the share of rows that are positive, for new images with questions of the same kind.

    With one row per image, it is the interval of Clopper and Pearson, and otherwise `korn_graubard`.

    Args:
        positive: bool [n].
        cluster: int [n], >= 0; the row's image. Rows of one image may depend on each other.

    Returns:
        The two ends, in [0, 1]; the share is between them. None if there are no rows.
    """
    n = len(positive)
    if n == 0:
        return None
    rows = np.bincount(cluster)
    found = np.bincount(cluster[positive], minlength=len(rows))
    n_clusters, n_positive = int(np.count_nonzero(rows)), int(found.sum())
    if n_clusters == n:
        return clopper_pearson(n_positive / n, n)
    variance = None
    if n_clusters > 1:
        # Whole numbers: n times the residual of each image. Their squares would not fit into 64 bits. Numbers without
        # rows are left out, because zeros beside them change the last bit of a sum.
        residual = (n * found - n_positive * rows)[rows > 0] / n
        variance = n_clusters / (n_clusters - 1) * float(np.sort(residual**2).sum()) / n**2
    n_rarer = min(int(np.count_nonzero(found)), int(np.count_nonzero(rows - found)))
    return korn_graubard(n_positive / n, variance, n=n, n_clusters=n_clusters, n_rarer=n_rarer)


def korn_graubard(
    share: float, variance: float | None, *, n: int, n_clusters: int, n_rarer: int | None = None
) -> tuple[float, float]:
    """Return the 95% interval of a share, given its variance over images.

    It is `clopper_pearson` with the effective number of rows
        min(n, n / (variance / (share (1 - share) / (n - 1))) * (t[n - 1] / t[df])^2),
    the number of independent rows that would have the same variance; t[df] is the 97.5th percentile of Student's t, and
    the second factor allows for the variance of the variance. Degrees of freedom are n_clusters - 1, and at most
    2 n_rarer: if few images hold the rarer kind of row, the variance is about a sum of as many squares, which differ.

    Where the variance is 0 or unknown, nothing is known of the correlation within images, and the effective number is
    that of the images. For a share of 0 or 1 this is conservative, because at worst all rows of an image have the same
    value.

    Args:
        share: In [0, 1].
        variance: The variance of the share; None if it is unknown, for instance because there is one image only.
        n: Number of rows, > 0.
        n_clusters: Number of images, from 1 to n; or of the fewer ones of two kinds.
        n_rarer: Number of images with positive rows, or with others, whichever are fewer; None if it is not known.

    Returns:
        The two ends, in [0, 1]; the share is between them.
    """
    if not 0.0 < share < 1.0 or not variance or n_clusters < 2:
        return clopper_pearson(share, n_clusters)
    df = n_clusters - 1 if n_rarer is None else min(n_clusters - 1, 2 * n_rarer)
    size = n * (share * (1.0 - share) / (n - 1)) / variance
    size *= (_t(n - 1) / _t(df)) ** 2
    return clopper_pearson(share, min(float(n), size))


def clopper_pearson(share: float, n: float) -> tuple[float, float]:
    """Return the 95% interval of a binomial share.

    The ends are the quantiles 0.025 of Beta(x, n - x + 1) and 0.975 of Beta(x + 1, n - x), with x = share * n.

    Args:
        share: In [0, 1].
        n: Number of independent rows, > 0; need not be a whole number.

    Returns:
        The two ends, in [0, 1]; the lower one is 0 where the share is 0, the upper one 1 where it is 1.
    """
    x, rest = share * n, (1.0 - share) * n
    low = 0.0 if share == 0.0 else float(scipy.special.betaincinv(x, rest + 1.0, ALPHA / 2))
    high = 1.0 if share == 1.0 else float(scipy.special.betaincinv(x + 1.0, rest, 1.0 - ALPHA / 2))
    return min(low, share), max(high, share)


def _t(degrees_of_freedom: int) -> float:
    return float(scipy.special.stdtrit(degrees_of_freedom, 1.0 - ALPHA / 2))

"""P-values of bootstrap differences, and Holm's adjustment for several of them."""

from collections.abc import Sequence

import numpy as np

__all__ = ["EQUAL", "holm", "p_value"]

# A difference of at most this size is 0. Replicates are means over seeds and data sets, which round, so that the
# difference of two equal values can be about 1e-16.
EQUAL = 1e-12


def p_value(differences: np.ndarray) -> float | None:
    """Return the two-sided p-value of the hypothesis "no difference" from bootstrap replicates of a difference.

    p = min(1, 2 min(1 + #(d <= 0), 1 + #(d >= 0)) / (B + 1)), with d the replicates and B the number of those that have
    a value. It is in (0, 1], and 1 where all differences are 0. A difference of at most `EQUAL` in size is 0 and counts
    on both sides.

    Args:
        differences: float64 [B], NaN where a replicate has no value.

    Returns:
        The p-value; None if no replicate has a value.
    """
    defined = differences[~np.isnan(differences)]
    if len(defined) == 0:
        return None
    fewest = min(int(np.count_nonzero(defined <= EQUAL)), int(np.count_nonzero(defined >= -EQUAL)))
    return min(1.0, 2 * (1 + fewest) / (len(defined) + 1))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the p-values of one family, adjusted by Holm's step-down method.

    The k-th smallest of m p-values is multiplied by m - k + 1. It is then raised to the adjusted value before it, if
    that is larger, and limited to 1. Equal p-values stay equal.

    Args:
        p_values: The p-values; None for a comparison without one, which does not count towards m.

    Returns:
        The adjusted p-values in the same order; None stays None.

    References:
        Holm, A Simple Sequentially Rejective Multiple Test Procedure, 1979.
    """
    order = sorted((p, k) for k, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, k) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p))
        adjusted[k] = largest
    return adjusted

"""P-values of bootstrap differences, and Holm's adjustment for several of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["EQUAL", "P", "holm", "p_value"]

# A difference of at most this size is 0. Replicates are means over seeds and data sets, which round, so that the
# difference of two equal values can be about 1e-16.
EQUAL = 1e-12


class P(NamedTuple):
    """A p-value.

    Attributes:
        value: In (0, 1].
        at_most: Whether it is the smallest one that the number of resamples can give, so that p may be smaller.
    """

    value: float
    at_most: bool


def p_value(differences: np.ndarray) -> P | None:
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
    p = min(1.0, 2 * (1 + fewest) / (len(defined) + 1))
    return P(p, at_most=fewest == 0 and p < 1.0)


def holm(p_values: Sequence[P | None]) -> list[P | None]:
    """Return the p-values of one family, adjusted by Holm's step-down method.

    The k-th smallest of m p-values is multiplied by m - k + 1. It is then raised to the adjusted value before it, if
    that is larger, and limited to 1. Equal p-values stay equal. An adjusted value is an upper limit (`at_most`) where
    the p-value that it comes from is one.

    Args:
        p_values: The p-values; None for a comparison without one, which does not count towards m.

    Returns:
        The adjusted p-values in the same order; None stays None.

    References:
        Holm, A Simple Sequentially Rejective Multiple Test Procedure, 1979.
    """
    order = sorted((p.value, k, p) for k, p in enumerate(p_values) if p is not None)
    adjusted: list[P | None] = [None] * len(p_values)
    largest = P(0.0, at_most=False)
    for rank, (value, k, p) in enumerate(order):
        scaled = min(1.0, (len(order) - rank) * value)
        if scaled > largest.value:
            largest = P(scaled, at_most=p.at_most and scaled < 1.0)
        adjusted[k] = largest
    return adjusted

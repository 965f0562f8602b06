"""P-values of bootstrap differences, and Holm's adjustment for several of them."""

from collections.abc import Sequence

import numpy as np

# Replicates are means over seeds and data sets, which round: of two that are equal the difference can be some 1e-16.
EQUAL = 1e-12


def p_value(differences: np.ndarray) -> float | None:
    """Return the two-sided p-value of "no difference" from the replicates of a difference, float64 [B].

    p = min(1, 2 min(1 + #<=0, 1 + #>=0) / (B + 1)): in (0, 1], never 0, and 1 where all differences are 0. A difference
    of at most `EQUAL` is 0 and counts on both sides, whichever way it was rounded. B counts the replicates that have a
    value; None where none has.
    """
    defined = differences[~np.isnan(differences)]
    if len(defined) == 0:
        return None
    fewest = min(int(np.count_nonzero(defined <= EQUAL)), int(np.count_nonzero(defined >= -EQUAL)))
    return min(1.0, 2 * (1 + fewest) / (len(defined) + 1))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the p-values of one family adjusted by Holm's step-down method, in the order given.

    The k-th smallest of m is multiplied by m - k + 1, no adjusted value is below a smaller one's, none above 1. Ties
    get the same value. What has no p-value (None) has none afterwards and does not count.

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

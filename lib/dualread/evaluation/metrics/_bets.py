"""The largest wealth of bets on the images, one after another, for every threshold at once."""

import numpy as np

__all__ = ["largest_prefix_sums", "log_largest_wealth"]

# Stakes as shares of the largest one that cannot lose more than everything, and how the capital is divided among them.
# Large stakes win where nearly all answers are correct or images have many answers, which is where few images decide;
# small ones where the risk is close to the target and there are many images.
STAKES = 2.0 ** -np.arange(5)
SHARES = np.array([4, 1, 1, 1, 1]) / 8

# Stands for the factor 0 of an image whose answers are all wrong. An expected wealth grows by at most this much.
_NOTHING = 2.0**-53


def log_largest_wealth(place: np.ndarray, wrong: np.ndarray, *, target_risk: float, most: int) -> np.ndarray:
    """Return the logarithm of the largest wealth during the bets, after each answer has been added, float64 [n].

    With the first k answers, the image in place i has the balance Z_i = number wrong - target_risk * number of
    answers, and the stake s has the wealth prod over i < t of (1 - s Z_i) after t images. The result is the logarithm
    of max over s of (share of s) * max over t of this wealth, at least log(1) = 0.

    Args:
        place: int64 [n], the place of each answer's image in the order of the bets, 0 to number of images - 1.
        wrong: int64 [n], 1 for a wrong answer and 0 for a right one.
        target_risk: In [0, 1).
        most: Largest number of answers to one image, at least that of `place`.
    """
    n_answers, n_wrong = _running_sums_by(place, np.stack([np.ones_like(wrong), wrong]))

    def log_factors(n_answers: np.ndarray, n_wrong: np.ndarray) -> np.ndarray:
        """Return log(1 - s Z) for every stake, [5, n]."""
        stakes = STAKES[:, np.newaxis] / ((1.0 - target_risk) * most)
        return np.log(np.maximum(1.0 - stakes * (n_wrong - target_risk * n_answers), _NOTHING))

    # Each answer replaces the factor of its image.
    change = log_factors(n_answers, n_wrong) - log_factors(n_answers - 1, n_wrong - wrong)
    return np.maximum((largest_prefix_sums(place, change) + np.log(SHARES)[:, np.newaxis]).max(axis=0), 0.0)


def largest_prefix_sums(place: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Return, after each of n changes to a list of numbers that begins with zeros, its largest prefix sum.

    The prefix without any numbers counts, so that no result is below 0. A binary tree over the places has in each node
    the sum and the largest prefix sum of its part. All changes are carried from one level to the next at once; a node's
    state after a change combines the child that changed with the last state of the other one. This takes
    O(n log(number of places)) time, where a loop over the thresholds and images takes O(n * number of places).

    Args:
        place: int64 [n], the place in the list that each change adds to.
        change: float64 [k, n], what is added, for k lists.

    Returns:
        float64 [k, n].
    """
    n = len(place)
    rows = np.arange(n)
    time = np.argsort(place * n + rows)  # by node, and by time inside a node
    node = place[time]
    total = _running_sums_by(place, change)[:, time]
    best = np.maximum(total, 0.0)
    while node[-1] > 0:
        order = np.argsort((node >> 1) * n + time)
        node, time, total, best = node[order], time[order], total[:, order], best[:, order]
        right = (node & 1) == 1
        node = node >> 1
        opens = np.maximum.accumulate(np.where(_differs_from_last(node), rows, 0))
        last_left, last_right = (np.maximum.accumulate(np.where(of, rows, -1)) for of in (~right, right))
        other = np.where(right, last_left, last_right)  # the row with the last state of the other child
        known = other >= opens  # otherwise nothing has been added to it
        other_total, other_best = total[:, other] * known, best[:, other] * known
        left_total, left_best = np.where(right, other_total, total), np.where(right, other_best, best)
        best = np.maximum(left_best, left_total + np.where(right, best, other_best))
        total = total + other_total
    return best


def _running_sums_by(group: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return for every row the sums of `values` over the rows of its group, up to and including it, [k, n].

    Args:
        group: int64 [n].
        values: [k, n], k values per row.
    """
    order = np.argsort(group, kind="stable")
    ordered = values[:, order]
    total = np.cumsum(ordered, axis=1)
    opens = np.flatnonzero(_differs_from_last(group[order]))
    before = total[:, opens] - ordered[:, opens]
    sums = np.empty_like(total)
    sums[:, order] = total - np.repeat(before, np.diff(np.append(opens, len(group))), axis=1)
    return sums


def _differs_from_last(ordered: np.ndarray) -> np.ndarray:
    """Return where a value differs from the one before it, bool [n]; the first one does."""
    return np.append(True, ordered[1:] != ordered[:-1])

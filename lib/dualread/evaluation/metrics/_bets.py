"""The largest wealth of bets on the images, one after another, for every threshold at once."""

import numpy as np

# Stakes as shares of the largest one that cannot lose more than everything, and how the capital is divided among them.
# Large stakes win where nearly all answers are correct or images have many answers, which is where few images decide;
# small ones where the risk is close to the target and there are many images.
STAKES = 2.0 ** -np.arange(5)
SHARES = np.array([4, 1, 1, 1, 1]) / 8

# Stands for the factor 0 of an image whose answers are all wrong. An expected wealth grows by at most this much.
_NOTHING = 2.0**-53


def log_largest_wealth(
    place: np.ndarray, level: np.ndarray, wrong: np.ndarray, *, target_risk: float, most: int
) -> np.ndarray:
    """Return the logarithm of the largest wealth during the bets, for each number of levels kept, float64 [levels].

    With the answers of the first levels, the image in place i has the balance Z_i = number wrong - target_risk * number
    of answers, and the stake s has the wealth prod over i < t of (1 - s Z_i) after t images. The result is the
    logarithm of max over s of (share of s) * max over t of this wealth, at least log(1) = 0.

    Of each answer: `place`, int64 [n], is that of its image in the order of the bets, from 0; `level`, int64 [n], that
    of its confidence among the distinct ones, ascending from 0; `wrong`, int64 [n], is 1 or 0. An image has at most
    `most` answers.
    """
    n_answers, n_wrong = running_sums_by(place, np.stack([np.ones_like(wrong), wrong]))
    return log_largest_wealth_after(place, level, n_answers, n_wrong, target_risk=target_risk, most=most)


def log_largest_wealth_after(
    place: np.ndarray, time: np.ndarray, number: np.ndarray, loss: np.ndarray, *, target_risk: float, most: int
) -> np.ndarray:
    """Return what `log_largest_wealth` returns, at each time at which what is bet on changes, float64 [times].

    The image at `place`, int64 [n], has `number` answers, or reports, from `time` on (int64 [n], ascending from 0
    without gaps), and the `loss` of all of these together is from 0 to `number`. Of several rows with one place and
    time, the last counts.
    """
    factors = _log_factors(number, loss, target_risk=target_risk, most=most)
    return np.maximum((largest_prefix_sums(place, time, factors) + np.log(SHARES)[:, np.newaxis]).max(axis=0), 0.0)


def log_largest_wealth_at(n_kept: np.ndarray, n_wrong: np.ndarray, *, target_risk: float, most: int) -> np.ndarray:
    """Return what `log_largest_wealth` returns, for a few thresholds, float64 [thresholds].

    `n_kept` and `n_wrong`, int64 [thresholds, images], are of images in the order of the bets.
    """
    factors = _log_factors(n_kept, n_wrong, target_risk=target_risk, most=most)
    largest = np.maximum(np.cumsum(factors, axis=-1).max(axis=-1), 0.0)
    return np.maximum((largest + np.log(SHARES)[:, np.newaxis]).max(axis=0), 0.0)


def _log_factors(n_kept: np.ndarray, n_wrong: np.ndarray, *, target_risk: float, most: int) -> np.ndarray:
    """Return the logarithm of the factor of each stake, float64 [stakes, ...], for images with these numbers."""
    stakes = np.expand_dims(STAKES, tuple(range(1, n_kept.ndim + 1))) / ((1.0 - target_risk) * most)
    return np.log(np.maximum(1.0 - stakes * (n_wrong - target_risk * n_kept), _NOTHING))


def largest_prefix_sums(place: np.ndarray, time: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return the largest prefix sum of a list of numbers that begins with zeros, at each time, float64 [k, times].

    `value`, float64 [k, n], is what the number at `place` becomes at `time`, as in `log_largest_wealth_after`, for k
    lists. The prefix without any numbers counts, so that no result is below 0. A binary tree over the places has in
    each node the sum and the largest prefix sum of its part, at each time at which one of its numbers changed. All
    nodes of one level are made at once from those of the level below: a node's state after a change combines the child
    that changed with the last state of the other one. A level has at most n states, and at most one per node and time.
    This takes O(n log(number of places)) time, where a loop over times and places takes O(times * number of places).
    """
    n_times = time[-1] + 1
    state = place * n_times + time  # by node, and by time inside a node
    order = _last_of_each(np.argsort(state, kind="stable"), state)
    state, totals = state[order], [total[order] for total in value]
    bests = [np.maximum(total, 0.0) for total in totals]
    while state[-1] >= n_times:
        node, time = np.divmod(state, n_times)
        state = (node >> 1) * n_times + time
        order = np.argsort(state, kind="stable")  # of one time, the left child comes first
        right = (node[order] & 1) == 1
        rows, parent = np.arange(len(order)), node[order] >> 1
        opens = np.maximum.accumulate(np.where(_differs_from_last(parent), rows, 0))
        last_left, last_right = (np.maximum.accumulate(np.where(side, rows, -1)) for side in (~right, right))
        other = np.where(right, last_left, last_right)  # the row with the last state of the other child
        known = other >= opens  # otherwise nothing has changed in it
        last = _last_of_each(rows, state[order])
        state = state[order][last]
        for k in range(len(totals)):  # one list after the other, which takes less memory
            total, best = totals[k][order], bests[k][order]
            other_total, other_best = total[other] * known, best[other] * known
            left_total, left_best = np.where(right, other_total, total), np.where(right, other_best, best)
            bests[k] = np.maximum(left_best, left_total + np.where(right, best, other_best))[last]
            totals[k] = (total + other_total)[last]
    return np.stack(bests)


def _last_of_each(order: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Return `order`, in which equal states are neighbours, with the last row of each state alone."""
    ordered = state[order]
    return order[np.append(ordered[1:] != ordered[:-1], True)]


def running_sums_by(group: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return for every row the sums of `values` [k, n] over its group's rows (int64 [n]), up to and including it."""
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

"""Thresholds with a guarantee: keep answers whose error rate stays below a target on new images, with high probability.

`selective.threshold` finds the threshold at which the error rate of the given answers is low enough; on new answers the
rate is often above the target. `certified_threshold` allows for chance: of many validation sets, at most the share
`delta` give a threshold at which the error rate on new images is above the target. This holds for every number of
images, with ties, and where answers to one image depend on each other. It assumes that

- validation images and new images, with their questions, are independent draws from the same source. This fails out of
  distribution, and nothing is guaranteed there;
- no image of the source has more answers than `max_per_image`. Where nobody knows this number, it is the largest one
  among the validation images. Errors can then hide in images that are too rare to be among them;
- the confidence did not see these validation answers, for instance because it was fitted on other ones;
- one method and one target are meant. Of K thresholds, each is wrong with a probability of at most delta, and some one
  of them with a probability of at most K delta: where the best of K methods is chosen by what is certified for it, use
  delta / K.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import scipy  # loads its submodules when they are first used

from dualread.errors import UndefinedMetricError
from dualread.evaluation.decimals import as_number
from dualread.evaluation.metrics._bets import log_largest_wealth, log_largest_wealth_at
from dualread.evaluation.metrics._checks import checked, checked_correct, checked_groups, same_length
from dualread.seeding import generator

DELTA = 0.1


def certified_threshold(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    images: Sequence | np.ndarray,
    *,
    target_risk: float,
    delta: float = DELTA,
    max_per_image: int | None = None,
) -> float:
    """Return a confidence c such that new answers with confidence >= c have an error rate <= `target_risk`.

    The statement is wrong with a probability of at most `delta` over the draw of the validation images. The error rate
    is R(c) = E[number of wrong kept answers of an image] / E[number of kept answers of an image].

    Thresholds are tested by `risk_p_values` from the highest to the lowest. Each of the five `starts` brings delta / 5.
    The level of a test is what the starts at or above it have brought since the last test that failed: a failed test
    forfeits all of it, and testing goes on at the next start. These are five fixed sequences, and those that have not
    ended share their levels.

    Why the statement is wrong with a probability of at most delta: for start s_k, let t_k be the supremum of the
    thresholds c <= s_k with R(c) > target. It depends on the source and the start alone, not on the data, and
    R(t_k) >= target, because R is continuous from the left. If a threshold c with R(c) > target is certified, some
    sequence has passed the test of its t_k, whose p-value is that of the smallest tested threshold >= t_k, since both
    keep the same answers. Let t be the largest t_k that was passed in this way. Each sequence i that shared its level
    in this test had t_i >= t, because s_i >= t; and if t_i were larger, it would have been passed, too. Thus t_i = t,
    and the p-value at t is at most delta / 5 times m(t), the number of starts with t_i = t. The test at the fixed
    threshold t is valid, so that this has a probability of at most m(t) delta / 5. Over all distinct t, these add up
    to at most delta.

    Args:
        confidence: float64 [n] in [0, 1], of the validation answers.
        correct: bool [n].
        images: Strings or integers [n]; equal values mean the same image (or patient). Answers to one image may depend
            on each other, different images may not.
        target_risk: Largest error rate of the kept answers, in [0, 1); a rate of 0 is never certified.
        delta: Largest probability of a wrong statement, in (0, 1).
        max_per_image: Largest number of answers to an image that the source can have; None for the largest one here.

    Returns:
        The smallest threshold that is certified. It is one of the confidences, or one of the starts: where the start
        s passes and the next confidence below it fails, answers with confidence >= s were tested, and s is returned,
        not the smallest confidence above it.

    Raises:
        ValueError: An input is malformed, an argument is out of range, or an image has more than `max_per_image`
            answers.
        UndefinedMetricError: There are no rows, or no threshold is certified.

    References:
        Angelopoulos, Bates, Candes, Jordan, Lei, Learn then Test: Calibrating Predictive Algorithms to Achieve Risk
        Control, 2021 (tests of thresholds; fixed sequences with several starts).
        Wiens, A fixed sequence Bonferroni procedure for testing multiple endpoints, 2003 (levels that are passed on).
        Bretz, Maurer, Brannath, Posch, A graphical approach to sequentially rejective multiple test procedures, 2009.
    """
    target_risk, delta = as_number(target_risk, name="target_risk"), as_number(delta, name="delta")
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta: {delta}, expected a probability between 0 and 1.")
    levels, p = risk_p_values(confidence, correct, images, target_risk=target_risk, max_per_image=max_per_image)
    smallest = smallest_certified(levels, p, target_risk=target_risk, delta=delta)
    if smallest is not None:
        return smallest
    if target_risk == 0.0:
        raise UndefinedMetricError("no number of right answers certifies a risk of 0")
    right = np.ones(len(checked_correct(correct)), dtype=np.bool_)
    best = risk_p_values(confidence, right, images, target_risk=target_risk, max_per_image=max_per_image)
    reason = f"no threshold is certified for a risk of {target_risk:g} with delta {delta:g}: "
    if smallest_certified(*best, target_risk=target_risk, delta=delta) is None:
        n_images = int(checked_groups(images, name="images").max()) + 1
        raise UndefinedMetricError(
            reason + f"too few images ({n_images}), even if all {len(right)} answers were correct"
        )
    at_starts = _of_thresholds(np.asarray(starts(target_risk)), levels, p)
    raise UndefinedMetricError(
        reason + f"the smallest p-value where a sequence starts is {at_starts.min():.3g}, and"
        f" {delta / len(at_starts):.3g} is needed"
    )


def starts(target_risk: float) -> tuple[float, ...]:
    """Return the confidences at which the sequences of `certified_threshold` begin, descending.

    Answers with a calibrated confidence of 1 - target_risk or more have at most the target risk. The higher starts are
    for confidences that are too high; the lower ones are for confidences that are too low, and for few images. The
    start 0 keeps every answer.

    Args:
        target_risk: In [0, 1).
    """
    return (*(1.0 - target_risk * share for share in (0.25, 0.5, 1.0)), max(1.0 - 2 * target_risk, 0.0), 0.0)


def risk_p_values(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    images: Sequence | np.ndarray,
    *,
    target_risk: float,
    max_per_image: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for every threshold, the p-value of the hypothesis "the risk of the kept answers is at least the target".

    With one answer per image at most, the number of wrong ones among k kept answers is binomial, and the p-value is
    P(Binomial(k, target_risk) <= number of wrong kept answers).

    With several answers per image, image i has the balance Z_i = number of wrong kept answers - target_risk * number of
    kept answers, which is at most (1 - target_risk) M, with M = `max_per_image`. Under the hypothesis the mean of Z is
    at least 0. A bet against it with the stake s has, after t images, the wealth: product over i <= t of (1 - s Z_i).
    Let
        E_t = (W_0t + (W_1t + W_2t + W_3t + W_4t) / 4) / 2, with W_kt the wealth with 2^-k / ((1 - target_risk) M).
    No factor is negative, and images are independent: E_t is a supermartingale that starts at 1 under the hypothesis.
    By Ville's inequality P(max over t of E_t >= 1 / a) <= a for every a. Therefore 1 / max over t of E_t is a p-value.
    So is the slightly larger p = 1 / max over t and k of W_kt times its share in E_t (at most 1), which is returned,
    because it is found for all thresholds at once. Images without kept answers have the factor 1.

    The images come in a random order that depends on their names alone: they are sorted, and permuted by a generator
    whose seed is derived from their number.

    Args:
        confidence: float64 [n] in [0, 1].
        correct: bool [n].
        images: Strings or integers [n].
        target_risk: In [0, 1).
        max_per_image: See `certified_threshold`.

    Returns:
        The distinct confidences, float64 [m], descending; and for each as threshold the p-value, float64 [m] in [0, 1].

    Raises:
        ValueError: An input is malformed, `target_risk` is out of range, or an image has more than `max_per_image`
            answers.
        UndefinedMetricError: There are no rows.

    References:
        Waudby-Smith and Ramdas, Estimating Means of Bounded Random Variables by Betting, 2024 (wealth as evidence, and
        its running maximum).
    """
    target_risk = as_number(target_risk, name="target_risk")
    if not 0.0 <= target_risk < 1.0:
        raise ValueError(f"target_risk: {target_risk}, expected a share of errors from 0 to less than 1.")
    scores, labels = checked(confidence, correct)
    image = checked_groups(images, name="images")
    same_length(confidence=scores, images=image)
    sizes = np.bincount(image)
    most = int(sizes.max()) if max_per_image is None else max_per_image
    if sizes.max() > most:
        raise ValueError(f"max_per_image: {most}, but an image has {sizes.max()} answers.")
    order = np.lexsort((labels, image, -scores))  # so that sums do not depend on the order of the rows
    scores, wrong = scores[order], (~labels[order]).astype(np.int64)
    last = np.append(scores[1:] != scores[:-1], True)  # equal confidences are kept together
    if most == 1:
        n_kept = np.flatnonzero(last) + 1
        return scores[last], scipy.special.bdtr(np.cumsum(wrong)[last], n_kept, target_risk)
    place = order_of_bets(len(sizes))[image[order]]
    level = np.cumsum(last) - last
    return scores[last], np.exp(-log_largest_wealth(place, level, wrong, target_risk=target_risk, most=most))


def smallest_certified(
    levels: np.ndarray,
    p: np.ndarray,
    *,
    target_risk: float,
    delta: float,
    first: Sequence[float] = (),
    p_of_none: float = 1.0,
) -> float | None:
    """Return the smallest threshold that `certified_threshold` certifies, or None.

    Args:
        levels: float64 [m], descending: the distinct confidences.
        p: float64 [m], the p-value of each as threshold.
        target_risk: In [0, 1).
        delta: Largest probability of a wrong statement, in (0, 1).
        first: Where sequences begin, descending; `starts` by default. One that is listed k times brings k shares.
        p_of_none: The p-value of a threshold above all confidences.
    """
    first = first or starts(target_risk)
    thresholds = -np.unique(-np.concatenate([levels, first]))
    p = _of_thresholds(thresholds, levels, p, p_of_none)
    begins = np.searchsorted(-thresholds, -np.asarray(first))
    smallest, alive = None, 0
    for begin, end in zip(begins, [*begins[1:], len(thresholds)], strict=True):
        alive += 1
        failed = np.flatnonzero(p[begin:end] > delta / len(first) * alive)
        n_passed = int(failed[0]) if len(failed) else end - begin
        if n_passed:
            smallest = float(thresholds[begin + n_passed - 1])
        if len(failed):
            alive = 0
    return smallest


def certifies_any(
    confidence: np.ndarray, correct: np.ndarray, *, target_risk: float, delta: float, max_per_image: int
) -> bool:
    """Return whether `certified_threshold` certifies some threshold: whether the first test of a sequence passes.

    Args:
        confidence: float64 [images, answers] in [0, 1]; every image has the same number of answers.
        correct: bool [images, answers].
        target_risk: In (0, 1).
        delta: Largest probability of a wrong statement, in (0, 1).
        max_per_image: Largest number of answers to an image that the source can have.
    """
    first, n_starts = np.unique(starts(target_risk), return_counts=True)
    kept = confidence >= first[:, np.newaxis, np.newaxis]
    n_kept, n_wrong = kept.sum(axis=2), (kept & ~correct).sum(axis=2)
    if max_per_image == 1:
        p = scipy.special.bdtr(n_wrong.sum(axis=1), n_kept.sum(axis=1), target_risk)
    else:
        order = np.argsort(order_of_bets(len(confidence)))
        most = {"target_risk": target_risk, "most": max_per_image}
        p = np.exp(-log_largest_wealth_at(n_kept[:, order], n_wrong[:, order], **most))
    return bool((p <= delta / n_starts.sum() * n_starts).any())


@lru_cache(maxsize=8)
def order_of_bets(n_images: int) -> np.ndarray:
    """Return the place of each image in the order of the bets."""
    return generator("order of the bets", n_images).permutation(n_images)


def _of_thresholds(thresholds: np.ndarray, levels: np.ndarray, p: np.ndarray, of_none: float = 1.0) -> np.ndarray:
    """Return the p-value of each threshold: that of the confidences it keeps, and `of_none` where it keeps none."""
    return np.append(of_none, p)[np.searchsorted(-levels, -thresholds, side="right")]

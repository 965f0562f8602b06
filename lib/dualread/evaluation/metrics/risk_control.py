"""Thresholds with a guarantee: keep answers whose error rate stays below a target on new images, with high probability.

`selective.threshold` finds the threshold at which the error rate of the given answers is low enough; on new answers the
rate is often above the target. `certified_threshold` allows for chance: of many validation sets, at most the share
`delta` give a threshold at which the error rate on new images is above the target. This holds for every number of
images, with ties, and where answers to one image depend on each other. It assumes that

- validation images and new images, with their questions, are independent draws from the same source. This fails out of
  distribution, and nothing is guaranteed there;
- no new image has more answers than the validation image with the most. Errors can otherwise hide in images that are
  too rare to be in the validation set;
- the confidence did not see these validation answers, for instance because it was fitted on other ones.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics._checks import checked, same_length

__all__ = ["DELTA", "certified_threshold", "risk_p_values", "starts"]

DELTA = 0.1

# Stakes of the bet, as shares of the largest one that cannot lose more than everything. Large stakes win where nearly
# all answers are correct; small ones where the risk is close to the target and there are many images.
_STAKES = 2.0 ** -np.arange(5)


def certified_threshold(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    images: Sequence | np.ndarray,
    *,
    target_risk: float,
    delta: float = DELTA,
) -> float:
    """Return a confidence c such that new answers with confidence >= c have an error rate <= `target_risk`.

    The statement is wrong with a probability of at most `delta` over the draw of the validation images. The error rate
    is R(c) = E[number of wrong kept answers of an image] / E[number of kept answers of an image].

    Thresholds are tested by `risk_p_values` in five fixed sequences. Each begins at one of `starts`, goes down through
    all smaller thresholds, and ends at the first p-value above delta / 5. A sequence may test many thresholds, because
    it makes an error only if it passes one certain threshold: the highest one of the sequence with a risk above the
    target. The starts do not depend on the data, and therefore that threshold does not either.

    Args:
        confidence: float64 [n] in [0, 1], of the validation answers.
        correct: bool [n].
        images: Strings or integers [n]; equal values mean the same image (or patient). Answers to one image may depend
            on each other, different images may not.
        target_risk: Largest error rate of the kept answers, in [0, 1); a rate of 0 is never certified.
        delta: Largest probability of a wrong statement, in (0, 1).

    Returns:
        The smallest threshold that is certified; it is one of the confidences.

    Raises:
        ValueError: An input is malformed, or `target_risk` or `delta` is out of range.
        UndefinedMetricError: There are no rows, or no threshold is certified.

    References:
        Angelopoulos, Bates, Candes, Jordan, Lei, Learn then Test: Calibrating Predictive Algorithms to Achieve Risk
        Control, 2021 (tests of thresholds; fixed sequences with several starts).
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta: {delta}, expected a probability between 0 and 1.")
    levels, p = risk_p_values(confidence, correct, images, target_risk=target_risk)
    first = starts(target_risk)
    passed = p <= delta / len(first)
    ends = [_end_of_sequence(levels, passed, start) for start in first]
    if max(ends) < 0:
        raise UndefinedMetricError(_why_not(images, p, target_risk, delta))
    return float(levels[max(ends)])


def starts(target_risk: float) -> tuple[float, ...]:
    """Return the confidences at which the sequences of `certified_threshold` begin.

    Answers with a calibrated confidence of 1 - target_risk or more have at most the target risk. The higher starts are
    for confidences that are too high; the lower ones are for confidences that are too low, and for few images. The
    start 0 keeps every answer.

    Args:
        target_risk: In [0, 1).
    """
    return (*(1.0 - target_risk * share for share in (0.25, 0.5, 1.0)), max(1.0 - 2 * target_risk, 0.0), 0.0)


def risk_p_values(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, images: Sequence | np.ndarray, *, target_risk: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for every threshold, the p-value of the hypothesis "the kept answers have more than the target risk".

    Image i has the balance Z_i = number of wrong kept answers - target_risk * number of kept answers, which is at most
    (1 - target_risk) M, with M the largest number of answers of an image. Under the hypothesis the mean of Z is at
    least 0. A bet against it with the stake s has the final wealth: product over images of (1 - s Z_i). With
        E = mean over k = 0..4 of the wealth with the stake s_k = 2^-k / ((1 - target_risk) M),
    p = min(1, 1 / E). No factor is negative, and images are independent; the expectation of E is therefore at most 1
    under the hypothesis, and by Markov's inequality P(p <= a) <= a for every a. Images without kept answers have the
    factor 1. Only the number of answers limits Z, so that images of any size may be mixed.

    Args:
        confidence: float64 [n] in [0, 1].
        correct: bool [n].
        images: Strings or integers [n].
        target_risk: In [0, 1).

    Returns:
        The distinct confidences, float64 [m], descending; and for each as threshold the p-value, float64 [m] in [0, 1].

    Raises:
        ValueError: An input is malformed, or `target_risk` is out of range.
        UndefinedMetricError: There are no rows.

    References:
        Waudby-Smith and Ramdas, Estimating Means of Bounded Random Variables by Betting, 2024 (wealth as evidence).
    """
    if not 0.0 <= target_risk < 1.0:
        raise ValueError(f"target_risk: {target_risk}, expected a share of errors from 0 to less than 1.")
    scores, labels = checked(confidence, correct)
    same_length(confidence=scores, images=np.asarray(images))
    _, image = np.unique(np.asarray(images), return_inverse=True)
    order = np.lexsort((labels, image, -scores))  # so that sums do not depend on the order of the rows
    scores, wrong, image = scores[order], (~labels[order]).astype(np.int64), image[order]
    n_kept, n_wrong = _running_sums_by(image, np.stack([np.ones_like(wrong), wrong]))
    largest = (1.0 - target_risk) * int(n_kept.max())

    def log_factors(n_kept: np.ndarray, n_wrong: np.ndarray) -> np.ndarray:
        """Return log(1 - s Z) of every stake, [5, n]; a factor of 0 becomes 2^-53."""
        stake = _STAKES[:, np.newaxis] / largest
        return np.log(np.maximum(1.0 - stake * (n_wrong - target_risk * n_kept), 2.0**-53))

    # Each kept answer replaces the factor of its image.
    change = log_factors(n_kept, n_wrong) - log_factors(n_kept - 1, n_wrong - wrong)
    log_evidence = np.logaddexp.reduce(np.cumsum(change, axis=1), axis=0) - np.log(len(_STAKES))
    last = np.append(scores[1:] != scores[:-1], True)  # equal confidences are kept together
    return scores[last], np.exp(-np.maximum(log_evidence[last], 0.0))


def _running_sums_by(group: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return for every row the sums of `values` over the rows of its group, up to and including it, int64 [k, n].

    Args:
        group: int [n].
        values: int64 [k, n], k values per row.
    """
    order = np.argsort(group, kind="stable")
    ordered = values[:, order]
    total = np.cumsum(ordered, axis=1)
    opens = np.flatnonzero(np.append(True, np.diff(group[order]) != 0))
    before = total[:, opens] - ordered[:, opens]
    sums = np.empty_like(total)
    sums[:, order] = total - np.repeat(before, np.diff(np.append(opens, len(group))), axis=1)
    return sums


def _end_of_sequence(levels: np.ndarray, passed: np.ndarray, start: float) -> int:
    """Return the index of the last threshold that passes before one fails, from `start` downwards; -1 if none does."""
    first = int(np.searchsorted(-levels, -start, side="right")) - 1  # keeps the same answers as the threshold `start`
    if first < 0:
        return -1
    failed = np.flatnonzero(~passed[first:])
    n_passed = int(failed[0]) if len(failed) else len(levels) - first
    return first + n_passed - 1 if n_passed else -1


def _why_not(images: Sequence | np.ndarray, p: np.ndarray, target_risk: float, delta: float) -> str:
    n = len(np.asarray(images))
    _, best = risk_p_values(np.zeros(n), np.ones(n, dtype=np.bool_), images, target_risk=target_risk)
    needed = delta / len(starts(target_risk))
    if target_risk == 0.0:
        return "no number of right answers certifies a risk of 0"
    reason = f"no threshold is certified for a risk of {target_risk:g} with delta {delta:g}: "
    if best[0] > needed:
        n_images = len(np.unique(np.asarray(images)))
        return reason + f"too few images ({n_images}), even if all {n} answers were correct"
    return reason + f"the smallest p-value is {p.min():.2g}, {needed:.2g} is needed where a sequence starts"

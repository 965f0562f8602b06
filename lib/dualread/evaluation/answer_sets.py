"""Answer sets of questions with choices: those that are likely enough for the right one to be among them.

Split conformal prediction with the score 1 - p, for p the probability of a choice (`LAC` in MAPIE). Answers about one
image depend on each other: exchangeable are images, or patients, and not answers. Each calibration image therefore has
the same weight, which its answers share, and the new image has as much, at the worst score. Then the set of a random
answer about a new image misses the right choice with a probability of at most `miss`, over the draw of the calibration
images and the new one. This holds for any number and sizes of images, and for any probabilities. An image counts once,
however many answers it has: where those with many answers are harder, a smaller share of all answers is covered.

References:
    Lee, Barber, Willett, Distribution-free inference with hierarchical data, 2023 (hierarchical conformal prediction).
    Dunn, Wasserman, Ramdas, Distribution-Free Prediction Sets for Two-Layer Hierarchical Models, 2022.
    Sadinle, Lei, Wasserman, Least Ambiguous Set-Valued Classifiers With Bounded Error Levels, 2019 (the score).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metric import metric_row
from dualread.evaluation.metrics._checks import checked_confidence, not_empty, same_length
from dualread.evaluation.statistics.clusters import in_unit
from dualread.evaluation.statistics.proportion import share_interval

_ROUNDED = 1e-9  # shares of images add up to .9 only up to rounding
GROUP_PREFIX = "group:"
_THRESHOLD = re.compile(r"set_threshold_at_miss_(\d+)")


def conformal_threshold(probability: npt.ArrayLike, cluster: npt.ArrayLike, *, miss: float) -> float:
    """Return the smallest probability with which a choice is in a set.

    With p, the probability of each row's right choice, float64 [n] in [0, 1], in decreasing order, and each row the
    weight 1 / ((G + 1) n), n the rows of its `cluster`, int [n], one of G, it is the p at which the sum of the weights
    reaches 1 - miss. `miss`, in (0, 1), is how often a set may miss the right choice.

    Raises:
        ValueError: An input is malformed.
        UndefinedMetricError: There are no rows, or too few clusters: every set would have to hold all choices.
    """
    p, number = checked_confidence(probability, name="probability"), np.unique(cluster, return_inverse=True)[1]
    same_length(probability=p, cluster=number)
    if not 0.0 < miss < 1.0:
        raise ValueError(f"miss: {miss}, expected a number between 0 and 1, such as .1.")
    not_empty(p)
    sizes = np.bincount(number)
    if len(sizes) / (len(sizes) + 1) < 1.0 - miss - _ROUNDED:
        needed = ceil(1.0 / miss - 1.0 - _ROUNDED)
        raise UndefinedMetricError(
            f"{len(sizes)} calibration images, expected at least {needed} for a miss of {miss:g}"
        )
    order = np.argsort(-p, kind="stable")
    reached = np.cumsum(1.0 / ((len(sizes) + 1) * sizes[number[order]])) >= 1.0 - miss - _ROUNDED
    return float(p[order][np.argmax(reached)])


def in_set(probabilities: np.ndarray, threshold: float) -> np.ndarray:
    """Return which choices are in their question's set, bool [...]; NaN, where it has no such choice, is in none."""
    return probabilities >= threshold


class SetRates(NamedTuple):
    """What sets are like: shares of rows, but for the mean size; `coverage_of_clusters` is the mean over clusters.

    A row is covered if its set has the right choice; `low` and `high` are the ends of the 95% interval of `coverage`.
    """

    coverage: float
    low: float | None
    high: float | None
    coverage_of_clusters: float
    mean_size: float
    empty: float
    single: float


def set_rates(probabilities: np.ndarray, of_right: np.ndarray, cluster: np.ndarray, *, threshold: float) -> SetRates:
    """Return what the sets of n >= 1 rows are like, which hold the choices with at least a probability.

    Choices have `probabilities`, float64 [n, choices], with NaN where a row has no such choice, and the right one has
    `of_right`, float64 [n].
    """
    covered, size = in_set(of_right, threshold), in_set(probabilities, threshold).sum(axis=1)
    number = np.unique(cluster, return_inverse=True)[1]
    of_clusters = float(np.mean(np.bincount(number, covered) / np.bincount(number)))
    low, high = share_interval(covered, number) or (None, None)
    shares = (float(values.mean()) for values in (size, size == 0, size == 1))
    return SetRates(float(covered.mean()), low, high, of_clusters, *shares)


class Choices(NamedTuple):
    """Questions with choices, of which one is right: arguments of `set_rates`, and of how many others nothing is known.

    `n_without` questions have no choices, and `n_unknown` a right answer that is none of them.
    """

    probabilities: np.ndarray
    of_right: np.ndarray
    cluster: np.ndarray
    n_without: int
    n_unknown: int


def set_metric(kind: str, percent: int) -> str:
    """Return the metric's name, such as set_coverage_at_miss_10; kinds are `threshold` and the fields of `SetRates`."""
    return f"set_{kind}_at_miss_{percent:02d}"


def group_subset(by: str, group: str | None) -> str:
    """Return the subset of the metrics of a group, such as group:sex=f; group:sex of the questions without a value."""
    return f"{GROUP_PREFIX}{by}" + ("" if group is None else f"={group}")


@dataclass(frozen=True, kw_only=True)
class SetThreshold:
    """The smallest probability with which a choice is in a set, chosen on the validation questions of a study.

    Attributes:
        method: The method that reads the choices' probabilities.
        miss_percent: How often a set may miss the right choice, in percent.
        value: The threshold; None if there are too few questions.
        reason: Why there is no value; None if there is one.
        n_clusters: The number of images or patients that chose it.
    """

    method: str
    miss_percent: int
    value: float | None
    reason: str | None
    n_clusters: int

    @classmethod
    def of_metric(cls, row: Mapping[str, Any]) -> "SetThreshold | None":
        """Return the threshold in a row of the metrics of validation questions; None if it holds another metric."""
        if (name := _THRESHOLD.fullmatch(row["metric"])) is None:
            return None
        known = {"value": row["estimate"], "reason": row["reason"], "n_clusters": row["n_clusters"]}
        return cls(method=row["method"], miss_percent=int(name[1]), **known)


def set_rows(
    chosen_on: Choices, judged_on: Choices, miss_percent: Iterable[int], *, unit: str = "image", subset: str = "all"
) -> Iterator[dict]:
    """Yield one `metric_row` per metric of answer sets.

    Args:
        chosen_on: The questions that choose the thresholds.
        judged_on: Those whose sets are judged.
        miss_percent: How often a set may miss the right choice, in percent.
        unit: What a cluster of the questions that choose is.
        subset: What the questions are that are judged.
    """
    sizes = {"n": len(judged_on.of_right), "n_clusters": len(np.unique(judged_on.cluster))}
    for name, n in (("with_choices", sizes["n"]), ("without", judged_on.n_without), ("unknown", judged_on.n_unknown)):
        yield metric_row(subset, f"set_questions_{name}", float(n), **sizes)
    kinds = ("threshold", "coverage", "coverage_of_clusters", "mean_size", "empty", "single")
    for percent in miss_percent:
        names = {kind: set_metric(kind, percent) for kind in kinds}
        try:
            not_empty(judged_on.of_right)
            cut = conformal_threshold(chosen_on.of_right, chosen_on.cluster, miss=percent / 100)
        except UndefinedMetricError as error:
            reason = in_unit(str(error), unit)
            yield from (metric_row(subset, name, reason=reason, **sizes) for name in names.values())
            continue
        rates = {"threshold": cut, **set_rates(*judged_on[:3], threshold=cut)._asdict()}
        for kind, name in names.items():
            ends = {end: rates[end] if kind == "coverage" else None for end in ("low", "high")}
            yield metric_row(subset, name, rates[kind], **ends, **sizes)

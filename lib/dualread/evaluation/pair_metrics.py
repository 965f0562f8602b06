"""The metrics of donor pairs, and intervals of those that are means over pairs, from leaving out images.

A pair is a question with its own image, the source, and another image, the donor. Many pairs share an image, so that
pairs are no independent observations (see `statistics.jackknife`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
import scipy  # loads its submodules when they are first used

from dualread.errors import UndefinedMetricError
from dualread.evaluation.columns import (
    Columns,
    Mask,
    Metric,
    all_rows,
    decisive,
    on_columns,
    power,
    strict_decisive,
)
from dualread.evaluation.metrics import correctness, grounding
from dualread.evaluation.statistics.jackknife import PairShifts, Variance, pair_shifts
from dualread.evaluation.statistics.t_intervals import Limits, logit_interval

_LEVEL, _POWER = 0.05, 0.8


@dataclass(frozen=True, kw_only=True)
class PairMean:
    """A metric that is a mean over pairs.

    Attributes:
        values: Returns the position of every pair between `low` and `high`, 0, 1/2 or 1, as float64 [n]; NaN for a pair
            that the metric does not use.
        other: The column of the pair's other image.
        low: The metric's smallest possible value.
        high: Its largest.
    """

    values: Callable[[Columns], np.ndarray]
    other: str = "donor_image_id"
    low: float = 0.0
    high: float = 1.0

    def shifts(self, rows: Columns) -> PairShifts | None:
        """Return the shifts of the metric; None if it uses no pair."""
        values = self.values(rows)
        if np.isnan(values).all():
            return None
        return pair_shifts(values, *rows.image_numbers("source_image_id", self.other)) * (self.high - self.low)


def preference(other: str, mask: Mask) -> Callable[[Columns], np.ndarray]:
    """Return the values of a CCG-AUC: 1 for a pair with more confidence on the own image, 1/2 for a tie, 0 for less."""

    def values(rows: Columns) -> np.ndarray:
        wins = grounding.preference(rows["confidence_real"], rows[f"confidence_{other}"])
        return np.where(rows.mask(mask), wins, np.nan)

    return values


def _drop(other: str) -> Callable[[Columns], np.ndarray]:
    """Return the values of VRS: 1 for a pair that is correct on its own image alone, 0 if on the other alone."""
    return lambda rows: (1.0 + rows["correct_real"] - rows[f"correct_{other}"]) / 2


@dataclass(frozen=True, kw_only=True)
class PairValues:
    """A metric pair by pair.

    Attributes:
        values: float64 [n] in [0, 1]; NaN for a pair that the metric does not use.
        source: The number of the pair's source image, int64 [n]. All methods that are compared number images alike.
        donor: The number of its donor image, int64 [n].
    """

    values: np.ndarray
    source: np.ndarray
    donor: np.ndarray


PAIRS = {
    "natural_ccg_auc": PairMean(values=preference("donor", decisive("donor"))),
    "strict_ccg_auc": PairMean(values=preference("donor", strict_decisive)),
    "vrs": PairMean(values=_drop("donor"), low=-1.0),
    "vbr": PairMean(values=lambda rows: rows.mask(decisive("donor")).astype(np.float64)),
}
FIXED = {
    "fixed_prefix_ccg_auc": PairMean(values=preference("fixed", decisive("fixed"))),
    "strict_same_answer_ccg_auc": PairMean(values=preference("fixed", strict_decisive)),
}
SHUFFLED = {
    "shuffled_ccg_auc": PairMean(values=preference("shuffled", decisive("shuffled")), other="shuffled_image_id"),
    "shuffled_accuracy_drop": PairMean(values=_drop("shuffled"), other="shuffled_image_id", low=-1.0),
}
PAIR_MEANS = PAIRS | FIXED | SHUFFLED
# Two methods can be compared by these.
COMPARABLE = ("natural_ccg_auc", "strict_ccg_auc")


def limits(name: str, rows: Columns, estimate: float) -> Limits:
    """Return the 95% interval of the metric `name`; None if all its pairs have one image on a side."""
    mean = PAIR_MEANS[name]
    variance = _variance(name, rows)
    return None if variance is None else logit_interval(estimate, variance, low=mean.low, high=mean.high)


def pair_values(name: str, rows: Columns) -> PairValues:
    """Return the metric `name` pair by pair."""
    mean = PAIR_MEANS[name]
    source, donor = rows.image_numbers("source_image_id", mean.other)
    return PairValues(values=mean.values(rows), source=source, donor=donor)


def ties(name: str) -> Metric:
    """Return the share of the pairs of a CCG-AUC in which both confidences are equal, in [0, 1], as a metric."""

    def metric(rows: Columns) -> float:
        values = PAIR_MEANS[name].values(rows)
        n = int(np.count_nonzero(~np.isnan(values)))
        if n == 0:
            raise UndefinedMetricError("no decisive pair")
        return int(np.count_nonzero(values == 0.5)) / n

    return metric


def detectable(name: str) -> Metric:
    """Return the smallest CCG-AUC above .5 that 80% of samples like this one tell from .5, as a metric.

    The level is .05. It is .5 plus the standard error times the sum of the 97.5th and the 80th percentile of t, where
    the standard error is that of a value of .5. Where no pair differs from the others, images count as independent.

    Raises:
        UndefinedMetricError: The metric is undefined, or not even a value of 1 could be told from .5.
    """

    def metric(rows: Columns) -> float:
        variance = _variance(name, rows)
        if variance is None:
            raise UndefinedMetricError("no decisive pair")
        values = PAIR_MEANS[name].values(rows)
        share = float(np.nanmean(values))
        varies = variance.value > 0.0 and 0.0 < share < 1.0
        error = sqrt(variance.value / (share * (1.0 - share))) / 2 if varies else 0.5 / sqrt(variance.n)
        steps = sum(scipy.special.stdtrit(variance.df, (1.0 - _LEVEL / 2, _POWER))) if variance.df > 0.0 else np.inf
        if not 0.5 + steps * error <= 1.0:
            raise UndefinedMetricError("not even 1 could be told from .5")
        return float(0.5 + steps * error)

    return metric


def _variance(name: str, rows: Columns) -> Variance | None:
    def find() -> Variance | None:
        shifts = PAIR_MEANS[name].shifts(rows)
        return None if shifts is None else shifts.variance()

    return rows.once(("variance", name), find)


_BOTH_CORRECT = ("correct_real", "correct_donor")
_NATURAL = ("confidence_real", "confidence_donor", *_BOTH_CORRECT)
_CANONICAL = ("canonical_answer_real", "canonical_answer_donor")
_natural_mask = decisive("donor")

# On the donor pairs: the metric, and the pairs that it uses. Rates have a mean over data sets, counts have none.
PAIR_RATES: dict[str, tuple[Metric, Mask]] = {
    "natural_ccg_auc": (on_columns(grounding.natural_ccg_auc, *_NATURAL), _natural_mask),
    "strict_ccg_auc": (on_columns(grounding.strict_ccg_auc, *_NATURAL, *_CANONICAL), strict_decisive),
    "accuracy_real": (on_columns(correctness.accuracy, "correct_real"), all_rows),
    "accuracy_donor": (on_columns(correctness.accuracy, "correct_donor"), all_rows),
    "vrs": (on_columns(grounding.vrs, *_BOTH_CORRECT), all_rows),
    "vbr": (on_columns(grounding.vbr, *_BOTH_CORRECT), all_rows),
    "natural_ties": (ties("natural_ccg_auc"), _natural_mask),
    "strict_ties": (ties("strict_ccg_auc"), strict_decisive),
    "natural_few_sources": (power(_natural_mask, "few_sources"), _natural_mask),
    "natural_few_donors": (power(_natural_mask, "few_donors"), _natural_mask),
    "strict_few_sources": (power(strict_decisive, "few_sources"), strict_decisive),
    "strict_few_donors": (power(strict_decisive, "few_donors"), strict_decisive),
}
PAIR_COUNTS: dict[str, tuple[Metric, Mask]] = {
    "decisive_pairs": (power(_natural_mask, "pairs"), _natural_mask),
    "source_images": (power(_natural_mask, "source_images"), _natural_mask),
    "donor_images": (power(_natural_mask, "donor_images"), _natural_mask),
    "strict_decisive_pairs": (power(strict_decisive, "pairs"), strict_decisive),
    "strict_source_images": (power(strict_decisive, "source_images"), strict_decisive),
    "strict_donor_images": (power(strict_decisive, "donor_images"), strict_decisive),
    "natural_detectable": (detectable("natural_ccg_auc"), _natural_mask),
    "strict_detectable": (detectable("strict_ccg_auc"), strict_decisive),
}
PAIR_METRICS = PAIR_RATES | PAIR_COUNTS

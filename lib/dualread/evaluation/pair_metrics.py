"""The metrics of donor pairs, one declaration each, and intervals of those that are means over pairs.

A pair is a question with its own image, the source, and another image, the donor. Many pairs share an image, so that
pairs are no independent observations, and intervals leave out images (see `statistics.jackknife`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
import scipy  # loads its submodules when they are first used

from dualread.errors import UndefinedMetricError
from dualread.evaluation.columns import Columns, Mask, OfColumns, decisive, on_columns, power, strict_decisive
from dualread.evaluation.metric import PairMean, PairMetric
from dualread.evaluation.metrics import discrimination, grounding
from dualread.evaluation.statistics.jackknife import Variance
from dualread.evaluation.statistics.proportion import ALPHA
from dualread.evaluation.statistics.t_intervals import Limits, logit_interval

_LEVEL, _POWER = 0.05, 0.8


def preference(other: str, mask: Mask) -> Callable[[Columns], np.ndarray]:
    """Return the values of a CCG-AUC: 1 for a pair with more confidence on the own image, 1/2 for a tie, 0 for less."""

    def values(rows: Columns) -> np.ndarray:
        wins = grounding.preference(rows["confidence_real"], rows[f"confidence_{other}"])
        return np.where(rows.mask(mask), wins, np.nan)

    return values


def drop(other: str) -> Callable[[Columns], np.ndarray]:
    """Return the values of VRS: 1 for a pair that is correct on its own image alone, 0 if on the other alone."""
    return lambda rows: (1.0 + rows["correct_real"] - rows[f"correct_{other}"]) / 2


@dataclass(frozen=True, kw_only=True)
class PairValues:
    """A metric pair by pair.

    Attributes:
        values: float64 [n], in [0, 1] per count; NaN for a pair that the metric does not use.
        source: The number of the pair's source image, int64 [n]. All methods that are compared number images alike.
        donor: The number of its donor image, int64 [n].
        counts: Of reports, float64 [n]: how many claims the pair's value is the sum of. A pair of answers has one.
    """

    values: np.ndarray
    source: np.ndarray
    donor: np.ndarray
    counts: np.ndarray | float = 1.0

    def stored(self) -> np.ndarray:
        """Return what a study keeps: the values, float64 [n]; of reports, with their counts, float64 [2, n]."""
        return self.values if isinstance(self.counts, float) else np.stack([self.values, self.counts])


def limits(mean: PairMean, rows: Columns, estimate: float, alpha: float = ALPHA) -> Limits:
    """Return the interval of a mean over pairs; None if all its pairs have one image on a side."""
    variance = _variance(mean, rows)
    if variance is None:
        return None
    return logit_interval(estimate, variance, low=mean.low, high=mean.high, tail=alpha / 2)


def pair_values(mean: PairMean, rows: Columns) -> PairValues:
    """Return a mean over pairs pair by pair."""
    source, donor = rows.cluster_numbers("source_cluster_id", mean.other)
    return PairValues(values=mean.values(rows), source=source, donor=donor)


def ties(mean: PairMean) -> OfColumns:
    """Return the share of the pairs of a CCG-AUC in which both confidences are equal, in [0, 1], as a metric."""

    def metric(rows: Columns) -> float:
        values = mean.values(rows)
        n = int(np.count_nonzero(~np.isnan(values)))
        if n == 0:
            raise UndefinedMetricError("no decisive pair")
        return int(np.count_nonzero(values == 0.5)) / n

    return metric


def detectable(mean: PairMean) -> OfColumns:
    """Return the smallest CCG-AUC above .5 that 80% of samples like this one tell from .5, as a metric.

    The level is .05. It is .5 plus the standard error times the sum of the 97.5th and the 80th percentile of t, where
    the standard error is that of a value of .5. Where no pair differs from the others, images count as independent.

    Raises:
        UndefinedMetricError: The metric is undefined, or not even a value of 1 could be told from .5.
    """

    def metric(rows: Columns) -> float:
        variance = _variance(mean, rows)
        if variance is None:
            raise UndefinedMetricError("no decisive pair")
        values = mean.values(rows)
        share = float(np.nanmean(values))
        varies = variance.value > 0.0 and 0.0 < share < 1.0
        error = sqrt(variance.value / (share * (1.0 - share))) / 2 if varies else 0.5 / sqrt(variance.n)
        steps = sum(scipy.special.stdtrit(variance.df, (1.0 - _LEVEL / 2, _POWER))) if variance.df > 0.0 else np.inf
        if not 0.5 + steps * error <= 1.0:
            raise UndefinedMetricError("not even 1 could be told from .5")
        return float(0.5 + steps * error)

    return metric


def _variance(mean: PairMean, rows: Columns) -> Variance | None:
    def find() -> Variance | None:
        shifts = mean.shifts(rows)
        return None if shifts is None else shifts.variance()

    return rows.once(("variance", mean), find)


_BOTH_CORRECT = ("correct_real", "correct_donor")
_BOTH = ("confidence_real", "confidence_donor", *_BOTH_CORRECT)
_CANONICAL = ("canonical_answer_real", "canonical_answer_donor")
_natural = decisive("donor")
_OF_NATURAL = PairMean(values=preference("donor", _natural))
_OF_STRICT = PairMean(values=preference("donor", strict_decisive))

NATURAL_CCG_AUC = PairMetric(
    name="natural_ccg_auc",
    head="CCG-AUC",
    better="higher",
    value=on_columns(grounding.natural_ccg_auc, *_BOTH),
    mask=_natural,
    of_pairs=_OF_NATURAL,
    is_stored=True,
)
STRICT_CCG_AUC = PairMetric(
    name="strict_ccg_auc",
    head="Strict",
    better="higher",
    value=on_columns(grounding.strict_ccg_auc, *_BOTH, *_CANONICAL),
    mask=strict_decisive,
    of_pairs=_OF_STRICT,
    is_stored=True,
)
ACCURACY_REAL = PairMetric(
    name="accuracy_real", head="Acc.ʳᵉᵃˡ", value=on_columns(discrimination.accuracy, "correct_real")
)
ACCURACY_DONOR = PairMetric(
    name="accuracy_donor", head="Acc.ʰⁿ", value=on_columns(discrimination.accuracy, "correct_donor")
)
VRS = PairMetric(
    name="vrs",
    head="VRS",
    value=on_columns(grounding.vrs, *_BOTH_CORRECT),
    of_pairs=PairMean(values=drop("donor"), low=-1.0),
)
VBR = PairMetric(
    name="vbr",
    head="VBR",
    value=on_columns(grounding.vbr, *_BOTH_CORRECT),
    of_pairs=PairMean(values=lambda rows: rows.mask(_natural).astype(np.float64)),
)
_TIES = [
    PairMetric(name="natural_ties", value=ties(_OF_NATURAL), mask=_natural),
    PairMetric(name="strict_ties", value=ties(_OF_STRICT), mask=strict_decisive),
]


def of_sample(name: str, mask: Mask, field: str, *, images: str = "donor_cluster_id") -> PairMetric:
    """Return a flag about the pairs that a CCG-AUC uses: a field of `grounding.Power`."""
    return PairMetric(name=name, value=power(mask, field, images), mask=mask)


def _counted(name: str, mask: Mask, field: str, head: str = "") -> PairMetric:
    return PairMetric(name=name, head=head, digits=1, is_count=True, value=power(mask, field), mask=mask)


_FLAGS = [
    of_sample("natural_few_sources", _natural, "few_sources"),
    of_sample("natural_few_donors", _natural, "few_donors"),
    of_sample("strict_few_sources", strict_decisive, "few_sources"),
    of_sample("strict_few_donors", strict_decisive, "few_donors"),
]
DECISIVE_PAIRS = _counted("decisive_pairs", _natural, "pairs", "|ℰ|")
SOURCE_IMAGES = _counted("source_images", _natural, "source_images")
DONOR_IMAGES = _counted("donor_images", _natural, "donor_images")
STRICT_DECISIVE_PAIRS = _counted("strict_decisive_pairs", strict_decisive, "pairs", "Strict")
_STRICT_IMAGES = [
    _counted("strict_source_images", strict_decisive, "source_images"),
    _counted("strict_donor_images", strict_decisive, "donor_images"),
]
_DETECTABLE = [
    PairMetric(name="natural_detectable", is_count=True, value=detectable(_OF_NATURAL), mask=_natural),
    PairMetric(name="strict_detectable", is_count=True, value=detectable(_OF_STRICT), mask=strict_decisive),
]

# In the order of the metrics table.
PAIR_METRICS: dict[str, PairMetric] = {
    metric.name: metric
    for metric in (
        *(NATURAL_CCG_AUC, STRICT_CCG_AUC, ACCURACY_REAL, ACCURACY_DONOR, VRS, VBR, *_TIES, *_FLAGS),
        *(DECISIVE_PAIRS, SOURCE_IMAGES, DONOR_IMAGES, STRICT_DECISIVE_PAIRS, *_STRICT_IMAGES, *_DETECTABLE),
    )
}
# Two methods can be compared by these.
COMPARABLE = tuple(name for name, metric in PAIR_METRICS.items() if metric.is_stored)


def stored_pairs(rows: Columns) -> dict[str, PairValues]:
    """Return the metrics by which methods are compared, pair by pair."""
    means = {name: metric.of_pairs for name, metric in PAIR_METRICS.items() if metric.is_stored}
    return {name: pair_values(mean, rows) for name, mean in means.items() if mean is not None}

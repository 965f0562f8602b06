"""The metrics of donor pairs, one declaration each, and intervals of those that are means over pairs.

A pair is a question with its own image, the source, and another image, the donor. Many pairs share an image, so that
pairs are no independent observations, and intervals leave out images (see `statistics.jackknife`). What is declared of
donors is declared of other images, too: `controls` and `conditions` have the same metrics of those.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
import scipy  # loads its submodules when they are first used

from dualread.errors import UndefinedMetricError
from dualread.evaluation.columns import Columns, Mask, OfColumns, decisive, on_columns, strict_decisive
from dualread.evaluation.metric import PairMean, PairMetric
from dualread.evaluation.metrics import discrimination, grounding
from dualread.evaluation.statistics.jackknife import Variance
from dualread.evaluation.statistics.proportion import ALPHA
from dualread.evaluation.statistics.t_intervals import Limits, logit_interval

_LEVEL, _POWER = 0.05, 0.8
_DONOR = "donor_cluster_id"  # the column of the other image
_FIELDS = ("pairs", "source_images", "donor_images", *grounding.FEW_IMAGES_OF.values())  # of `grounding.Power`


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


def _variance(mean: PairMean, rows: Columns) -> Variance | None:
    def find() -> Variance | None:
        shifts = mean.shifts(rows)
        return None if shifts is None else shifts.variance()

    return rows.once(("variance", mean), find)


def ccg_auc(*, other: str, mask: Mask, images: str = _DONOR, **declared: Any) -> PairMetric:
    """Return a CCG-AUC: the share of the pairs of a mask with more confidence on the own image; a tie counts 1/2.

    `other` is the suffix of the columns of the other image's answers (donor, fixed, shuffled, other), `images` the
    column of this image; further fields of `Metric` are as `declared`.
    """
    chosen = "strictly decisive" if mask is strict_decisive else "decisive"

    def value(rows: Columns) -> float:
        confidences = rows["confidence_real"], rows[f"confidence_{other}"]
        return grounding.directional_share(*confidences, rows.mask(mask), chosen)

    def values(rows: Columns) -> np.ndarray:
        wins = grounding.preference(rows["confidence_real"], rows[f"confidence_{other}"])
        return np.where(rows.mask(mask), wins, np.nan)

    of_pairs = PairMean(values=values, other=images)
    return PairMetric(value=value, mask=mask, of_pairs=of_pairs, **declared)


def drop(*, other: str, images: str = _DONOR, **declared: Any) -> PairMetric:
    """Return the accuracy on the own images minus that on others; the arguments are those of `ccg_auc`."""
    columns = ("correct_real", f"correct_{other}")

    def values(rows: Columns) -> np.ndarray:  # 1 for a pair that is correct on its own image alone, 0 on the other
        return (1.0 + rows[columns[0]] - rows[columns[1]]) / 2

    of_pairs = PairMean(values=values, other=images, low=-1.0)
    return PairMetric(value=on_columns(grounding.vrs, *columns), of_pairs=of_pairs, **declared)


def sample_metrics(ccg: PairMetric, *names: str, **declared: Any) -> list[PairMetric]:
    """Return what the pairs of a CCG-AUC are like: the fields of `grounding.Power` with which the `names` end."""
    images = _DONOR if ccg.of_pairs is None else ccg.of_pairs.other

    def value(field: str, rows: Columns) -> float:
        chosen = rows.mask(ccg.mask)
        power = grounding.Power(
            pairs=int(np.count_nonzero(chosen)),
            source_images=rows.n_distinct("source_cluster_id", chosen),
            donor_images=rows.n_distinct(images, chosen),
        )
        return float(getattr(power, field))

    fields = {name: next(field for field in _FIELDS if name.endswith(field)) for name in names}
    return [
        PairMetric(name=name, value=partial(value, field), mask=ccg.mask, **declared) for name, field in fields.items()
    ]


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
    It is undefined where the metric is, or where not even a value of 1 could be told from .5.
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


NATURAL_CCG_AUC = ccg_auc(
    name="natural_ccg_auc", head="CCG-AUC", other="donor", mask=decisive("donor"), better="higher", is_stored=True
)
STRICT_CCG_AUC = ccg_auc(
    name="strict_ccg_auc", head="Strict", other="donor", mask=strict_decisive, better="higher", is_stored=True
)
ACCURACY_REAL = PairMetric(
    name="accuracy_real", head="Acc.ʳᵉᵃˡ", value=on_columns(discrimination.accuracy, "correct_real")
)
ACCURACY_DONOR = PairMetric(
    name="accuracy_donor", head="Acc.ʰⁿ", value=on_columns(discrimination.accuracy, "correct_donor")
)
VRS = drop(name="vrs", head="VRS", other="donor")
VBR = PairMetric(
    name="vbr",
    head="VBR",
    value=on_columns(grounding.vbr, "correct_real", "correct_donor"),
    of_pairs=PairMean(values=lambda rows: rows.mask(NATURAL_CCG_AUC.mask).astype(np.float64)),
)


def _of_both(name: str, value: Callable[[PairMean], OfColumns], **declared: Any) -> list[PairMetric]:
    """Return a metric of the pairs of either CCG-AUC."""
    return [
        PairMetric(name=f"{ccg.name.removesuffix('ccg_auc')}{name}", value=value(mean), mask=ccg.mask, **declared)
        for ccg in (NATURAL_CCG_AUC, STRICT_CCG_AUC)
        if (mean := ccg.of_pairs) is not None
    ]


def _counted(ccg: PairMetric, *, name: str, head: str = "") -> PairMetric:
    [metric] = sample_metrics(ccg, name, head=head, digits=1, is_count=True)
    return metric


DECISIVE_PAIRS = _counted(NATURAL_CCG_AUC, name="decisive_pairs", head="|ℰ|")
SOURCE_IMAGES = _counted(NATURAL_CCG_AUC, name="source_images")
DONOR_IMAGES = _counted(NATURAL_CCG_AUC, name="donor_images")
STRICT_DECISIVE_PAIRS = _counted(STRICT_CCG_AUC, name="strict_decisive_pairs", head="Strict")

# In the order of the metrics table.
PAIR_METRICS: dict[str, PairMetric] = {
    metric.name: metric
    for metric in (
        *(NATURAL_CCG_AUC, STRICT_CCG_AUC, ACCURACY_REAL, ACCURACY_DONOR, VRS, VBR, *_of_both("ties", ties)),
        *sample_metrics(NATURAL_CCG_AUC, "natural_few_sources", "natural_few_donors"),
        *sample_metrics(STRICT_CCG_AUC, "strict_few_sources", "strict_few_donors"),
        *(DECISIVE_PAIRS, SOURCE_IMAGES, DONOR_IMAGES, STRICT_DECISIVE_PAIRS),
        *(_counted(STRICT_CCG_AUC, name=name) for name in ("strict_source_images", "strict_donor_images")),
        *_of_both("detectable", detectable, is_count=True),
    )
}
# Two methods can be compared by these.
COMPARABLE = tuple(name for name, metric in PAIR_METRICS.items() if metric.is_stored)


def stored_pairs(rows: Columns) -> dict[str, PairValues]:
    """Return the metrics by which methods are compared, pair by pair."""
    means = {name: metric.of_pairs for name, metric in PAIR_METRICS.items() if metric.is_stored}
    return {name: pair_values(mean, rows) for name, mean in means.items() if mean is not None}

"""What is declared of a metric, once: how tables print it, how it is computed, and its spread; `explained` has words.

`answer_metrics` has the metrics of answers, `pair_metrics`, `controls` and `conditions` those of pairs of images. The
functions make rows of the metrics table, in which an undefined metric has a null estimate and a reason.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

import numpy as np

from dualread.errors import ArtifactError, UndefinedMetricError
from dualread.evaluation.columns import Columns, Mask, OfColumns, all_rows
from dualread.evaluation.statistics.clusters import InEffect
from dualread.evaluation.statistics.jackknife import PairShifts, pair_shifts
from dualread.evaluation.statistics.kernels import Kernel
from dualread.evaluation.statistics.t_intervals import Limits
from dualread.evaluation.statistics.t_replicates import Spread, spread_at_tpr, spread_of_ranks

# Builds a kernel from the answers, the number of each answer's image, int [n], and the number of images.
BuildKernel = Callable[[Columns, np.ndarray, int], Kernel]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number that tables print.

    Attributes:
        name: Its name in tables of metrics.
        head: The head of its columns in printed tables, without an arrow.
        better: Which values are better; None if it is no measure of quality.
        digits: The decimals that are printed.
        is_of_actor: Whether all methods that judge the same answers have the same value; none is the best then.
        is_difference: Whether it is printed with its sign.
        is_count: Whether it counts or describes a sample, so that its mean over data sets says nothing.
        ood_mean: The mean over OOD data sets that it has otherwise: over those with answers, or with donor pairs.
    """

    name: str
    head: str = ""
    better: Literal["higher", "lower"] | None = None
    digits: int = 3
    is_of_actor: bool = False
    is_difference: bool = False
    is_count: bool = False
    ood_mean: str = "ood6"

    def headed(self, text: str | None = None) -> str:
        """Return `text`, or the metric's head, with an arrow that says what is better."""
        text = self.head if text is None else text
        if self.better is None or not text:
            return text
        return f"{text}{'↑' if self.better == 'higher' else '↓'}"


@dataclass(frozen=True, kw_only=True)
class AnswerMetric(Metric):
    """A metric of answers on the original images.

    With a `kernel` it has replicates, one value per resample of the images, by which two methods are compared. A rate
    has the interval of a share, other metrics with a kernel the percentiles of their replicates.

    Attributes:
        value: Returns the metric of rows; raises UndefinedMetricError where it has no value.
        counts: Of a rate, the rows that it counts, bool [n].
        kernel: Builds what computes the replicates; one that several metrics share gives them in the order below.
        spread: Widens the replicates for the images on which the variance rests, of a metric in [0, 1]; None if the
            kernel has done so, or for plain percentiles, which cover too rarely on few images.
        is_of_probabilities: Whether confidences have to be probabilities; other metrics compare them with each other.
        is_skewed: Whether a difference rests on few images where most answers are right, or few wrong and confident.
        is_signed: Whether the value can be negative.
        largest: The largest possible value, or infinity.
        is_stored: Whether a study stores the replicates, because its tables compare methods by the metric.
    """

    value: OfColumns
    counts: Callable[[Columns], np.ndarray] | None = None
    kernel: BuildKernel | None = None
    spread: Spread | None = None
    is_of_probabilities: bool = False
    is_skewed: bool = False
    is_signed: bool = False
    largest: float = 1.0
    is_stored: bool = False

    @property
    def is_of_ranks(self) -> bool:
        """Whether a difference rests on the images with the rarer kind of answer, right or wrong."""
        return self.spread in (spread_at_tpr, spread_of_ranks)


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
    other: str = "donor_cluster_id"
    low: float = 0.0
    high: float = 1.0

    def shifts(self, rows: Columns) -> PairShifts | None:
        """Return the shifts of the metric; None if it uses no pair."""
        values = self.values(rows)
        if np.isnan(values).all():
            return None
        return pair_shifts(values, *rows.cluster_numbers("source_cluster_id", self.other)) * (self.high - self.low)


@dataclass(frozen=True, kw_only=True)
class PairMetric(Metric):
    """A metric of donor pairs.

    Attributes:
        value: Returns the metric of rows; raises UndefinedMetricError where it has no value.
        mask: Chooses the pairs that it uses.
        of_pairs: Says what every pair has, of a metric that is a mean over pairs and therefore has an interval.
        is_stored: Whether a study stores the values of its pairs, because its tables compare methods by the metric.
    """

    value: OfColumns
    mask: Mask = all_rows
    of_pairs: PairMean | None = None
    is_stored: bool = False
    ood_mean: str = "ood_ccg"


def metric_row(subset: str, metric: str, estimate: float | None = None, **columns: Any) -> dict[str, Any]:
    """Return one value of one metric: columns of the metrics table, without an interval if `columns` has none."""
    value = {"subset": subset, "metric": metric, "estimate": estimate, "low": None, "high": None}
    return {**value, "n": 0, "n_clusters": 0, "reason": None, **columns}


def measure(subset: str, name: str, metric: OfColumns, rows: Columns, *, n: int, n_clusters: int) -> dict[str, Any]:
    """Return the metric `name` of `rows` without an interval; an undefined metric has a reason.

    Raises:
        ArtifactError: The metric is NaN or infinite.
    """
    try:
        value = float(metric(rows))
    except UndefinedMetricError as error:
        return metric_row(subset, name, n=n, n_clusters=n_clusters, reason=str(error))
    if not isfinite(value):
        raise ArtifactError(
            f"the metric {name} is {value} on {n} rows of the subset {subset!r}. Expected a number. Let its function"
            " raise UndefinedMetricError where it has no value."
        )
    return metric_row(subset, name, value, n=n, n_clusters=n_clusters)


def with_limits(row: dict[str, Any], ends: Limits, *images: np.ndarray) -> dict[str, Any]:
    """Return a row with the ends of its interval, or with the reason why it has none (`why_none` of the images)."""
    if ends is not None:
        return row | {"low": ends[0], "high": ends[1]}
    return row | {"reason": row["reason"] or why_none(*images)}


def why_none(*images: np.ndarray) -> str | None:
    """Return why rows about these images, int [n] for each side, have no interval; None if images are no reason."""
    return next((reason for side in images if (reason := InEffect.of(np.bincount(side)).reason)), None)

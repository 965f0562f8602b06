"""Every metric of one method on one (data set, split), for all, open and closed questions, with its intervals."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from dualread.errors import ArtifactError, UndefinedMetricError
from dualread.evaluation import controls
from dualread.evaluation.answer_metrics import ALL_METRICS, FURTHER_METRICS, NOISE_FLOOR, WITH_PERCENTILES
from dualread.evaluation.columns import CellColumns, Columns, OfColumns, all_rows
from dualread.evaluation.join import FORCED_ALONE
from dualread.evaluation.metric import AnswerMetric, PairMetric
from dualread.evaluation.metrics import calibration_chance
from dualread.evaluation.pair_metrics import PAIR_METRICS, PairValues, limits, stored_pairs
from dualread.evaluation.replicates import replicates
from dualread.evaluation.statistics.bootstrap import ClusterDraws, including, interval
from dualread.evaluation.statistics.clusters import InEffect
from dualread.evaluation.statistics.proportion import share_interval
from dualread.evaluation.statistics.t_intervals import Limits

SUBSETS = ("all", "open", "closed")
_RESAMPLED = {*WITH_PERCENTILES, controls.SHUFFLED_AUROC.name}


class Estimate(NamedTuple):
    """One value of one metric; the fields are columns of the metrics table."""

    subset: str
    metric: str
    estimate: float | None
    low: float | None
    high: float | None
    n: int
    n_clusters: int
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class MethodEstimates:
    """What it takes to compare a method with others on the same questions.

    Attributes:
        replicates: By metric of answers, and `controls.SHUFFLED_AUROC`, float64 [B].
        pairs: By metric of `pair_metrics.COMPARABLE`, its value pair by pair.
    """

    replicates: Mapping[str, np.ndarray]
    pairs: Mapping[str, PairValues]


def estimate(
    cell: CellColumns, draws: ClusterDraws, further: Collection[str] = ()
) -> tuple[list[dict], MethodEstimates]:
    """Return one mapping per (subset, metric), and what comparisons on all questions need.

    An undefined metric has a null estimate and a reason. A metric with a percentile interval has a further row
    <metric>_undefined_replicates, which counts the replicates without a value. Without replicates, no metric of answers
    has an interval.

    Args:
        cell: The joined tables of one (data set, split).
        draws: Resamples of the manifest's images, shared by all subsets and metrics.
        further: Names of `FURTHER_METRICS` to compute as well.
    """
    answer_metrics = {
        name: metric for name, metric in ALL_METRICS.items() if name in further or name not in FURTHER_METRICS
    }
    rows = []
    parts = {subset: cell if subset == "all" else cell.of_type(subset) for subset in SUBSETS}
    # A part that has all answers, such as "closed" where no question is open, shares the replicates of "all".
    whole = [subset for subset, part in parts.items() if len(part.answers) == len(cell.answers)]
    distinct = {name: part for name, part in parts.items() if name == "all" or name not in whole}
    resampled = replicates(distinct, draws, further)
    for subset in SUBSETS:
        part = parts.pop(subset)  # what is known about a part is freed after its turn
        known = resampled["all" if subset in whole else subset]
        rows += subset_rows(subset, part, draws, answer_metrics, known)
    pairs = {} if isinstance(cell.pairs, str) else stored_pairs(cell.pairs)
    return rows, MethodEstimates(replicates=resampled["all"], pairs=pairs)


def subset_rows(
    subset: str,
    part: CellColumns,
    draws: ClusterDraws,
    answer_metrics: Mapping[str, AnswerMetric],
    known: Mapping[str, np.ndarray],
) -> Iterator[dict]:
    """Yield the rows of one subset as `estimate` does, with the replicates `known` by metric, of `replicates`."""
    for row in _rows(subset, part, draws, answer_metrics):
        if row.metric in _RESAMPLED:
            if row.metric in known and len(known[row.metric]):
                row = row._replace(reason=row.reason or why_none(part.answers.codes("cluster_id")))
            yield from _with_percentiles(row, known.get(row.metric))
        else:
            yield row._asdict()


def _rows(
    subset: str, cell: CellColumns, draws: ClusterDraws, answer_metrics: Mapping[str, AnswerMetric]
) -> Iterator[Estimate]:
    sizes = {"n": len(cell.answers), "n_clusters": cell.answers.n_distinct("cluster_id", all_rows(cell.answers))}
    for name, metric in answer_metrics.items():
        row = measure(subset, name, metric.value, cell.answers, **sizes)
        if metric.counts is not None and row.estimate is not None and draws.replicates:
            image = cell.answers.codes("cluster_id")
            row = with_limits(row, share_interval(metric.counts(cell.answers), image), image)
        yield row
        if name == "ece15":
            yield measure(subset, NOISE_FLOOR, partial(noise_floor, draws=draws), cell.answers, **sizes)
    yield from _masked_rows(subset, cell.pairs, PAIR_METRICS)
    of_claims = cell.pairs == FORCED_ALONE
    yield from _masked_rows(subset, cell.fixed, controls.FORCED_METRICS)
    yield from _masked_rows(subset, cell.pairs if of_claims else cell.fixed, controls.SAME_ANSWER_METRICS)
    if of_claims:
        yield from _masked_rows(subset, cell.fixed, controls.CLAIM_METRICS)
    yield from _masked_rows(subset, cell.shuffled, controls.SHUFFLED_METRICS)


def with_limits(row: Estimate, ends: Limits, *images: np.ndarray) -> Estimate:
    """Return the estimate with the ends of its interval, or with the reason why it has none.

    Args:
        row: The estimate.
        ends: Of its interval; None if there is none.
        images: The image of each of its rows, int [n]; of pairs, those of both sides.
    """
    if ends is not None and ends[0] is not None:
        return row._replace(low=ends[0], high=ends[1])
    return row._replace(reason=row.reason or why_none(*images))


def why_none(*images: np.ndarray) -> str | None:
    """Return why rows about these images, int [n] for each side, have no interval; None if images are no reason."""
    return next((reason for side in images if (reason := InEffect.of(np.bincount(side)).reason)), None)


def _masked_rows(subset: str, rows: Columns | str, metrics: Mapping[str, PairMetric]) -> Iterator[Estimate]:
    for name, metric in metrics.items():
        if isinstance(rows, str):
            yield undefined(subset, name, rows)
        else:
            chosen = rows.mask(metric.mask)
            n, n_clusters = int(np.count_nonzero(chosen)), rows.n_distinct("source_cluster_id", chosen)
            row = measure(subset, name, metric.value, rows, n=n, n_clusters=n_clusters)
            if metric.of_pairs is not None and row.estimate is not None:
                sides = rows.cluster_numbers("source_cluster_id", metric.of_pairs.other)[:, chosen]
                row = with_limits(row, limits(metric.of_pairs, rows, row.estimate), *sides)
            yield row


def noise_floor(answers: Columns, draws: ClusterDraws) -> float:
    """Return the ECE that calibrated confidences reach by chance; all methods meet the same signs of the images."""
    images = answers.cluster("cluster_id", draws), len(draws.cluster_ids)
    return calibration_chance.ece_noise_floor(answers["confidence"], answers["correct"], *images, draws.names)


def measure(subset: str, name: str, metric: OfColumns, rows: Columns, *, n: int, n_clusters: int) -> Estimate:
    """Return the metric `name` of `rows` without an interval; an undefined metric has a reason.

    Raises:
        ArtifactError: The metric is NaN or infinite.
    """
    value, reason = None, None
    try:
        value = float(metric(rows))
    except UndefinedMetricError as error:
        reason = str(error)
    if value is not None and not isfinite(value):
        raise ArtifactError(
            f"the metric {name} is {value} on {n} rows of the subset {subset!r}. Expected a number. Let its function"
            " raise UndefinedMetricError where it has no value."
        )
    return Estimate(
        subset=subset, metric=name, estimate=value, low=None, high=None, n=n, n_clusters=n_clusters, reason=reason
    )


def undefined(subset: str, name: str, reason: str) -> Estimate:
    """Return the metric `name` without a value, and the reason."""
    return Estimate(subset=subset, metric=name, estimate=None, low=None, high=None, n=0, n_clusters=0, reason=reason)


def _with_percentiles(row: Estimate, values: np.ndarray | None) -> list[dict[str, Any]]:
    name = f"{row.metric}_undefined_replicates"
    if values is None or len(values) == 0:
        reason = row.reason if values is None else None
        return [row._asdict(), undefined(row.subset, name, reason or "no replicates were asked for")._asdict()]
    percentiles = interval(values)
    low, high = including(percentiles.low, percentiles.high, row.estimate)
    count = {"metric": name, "estimate": float(percentiles.n_undefined), "reason": None}
    return [{**row._asdict(), "low": low, "high": high}, {**row._asdict(), **count}]

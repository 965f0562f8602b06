"""Every metric of one method on one (data set, split), for all, open and closed questions, with its intervals."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dualread.evaluation import controls
from dualread.evaluation.answer_metrics import ALL_METRICS, FURTHER_METRICS, NOISE_FLOOR, WITH_PERCENTILES
from dualread.evaluation.columns import CellColumns, Columns, all_rows
from dualread.evaluation.join import FORCED_ALONE
from dualread.evaluation.metric import AnswerMetric, PairMetric, measure, metric_row, why_none, with_limits
from dualread.evaluation.metrics import calibration_chance
from dualread.evaluation.pair_metrics import PAIR_METRICS, PairValues, limits, stored_pairs
from dualread.evaluation.replicates import replicates
from dualread.evaluation.statistics.bootstrap import ClusterDraws, including, interval
from dualread.evaluation.statistics.proportion import share_interval

SUBSETS = ("all", "open", "closed")
_RESAMPLED = {*WITH_PERCENTILES, controls.SHUFFLED_AUROC.name}


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
    """Return one `metric_row` per (subset, metric), and what comparisons on all questions need.

    A metric with a percentile interval has a further row <metric>_undefined_replicates, which counts the replicates
    without a value. Without replicates, no metric of answers has an interval.

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
        if row["metric"] in _RESAMPLED:
            values = known.get(row["metric"])
            if values is not None and len(values):
                row["reason"] = row["reason"] or why_none(part.answers.codes("cluster_id"))
            yield from _with_percentiles(row, values)
        else:
            yield row


def _rows(
    subset: str, cell: CellColumns, draws: ClusterDraws, answer_metrics: Mapping[str, AnswerMetric]
) -> Iterator[dict]:
    sizes = {"n": len(cell.answers), "n_clusters": cell.answers.n_distinct("cluster_id", all_rows(cell.answers))}
    for name, metric in answer_metrics.items():
        row = measure(subset, name, metric.value, cell.answers, **sizes)
        if metric.counts is not None and row["estimate"] is not None and draws.replicates:
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


def _masked_rows(subset: str, rows: Columns | str, metrics: Mapping[str, PairMetric]) -> Iterator[dict]:
    for name, metric in metrics.items():
        if isinstance(rows, str):
            yield metric_row(subset, name, reason=rows)
            continue
        row, mean = masked_row(subset, rows, metric), metric.of_pairs
        if mean is not None and row["estimate"] is not None:
            sides = rows.cluster_numbers("source_cluster_id", mean.other)[:, rows.mask(metric.mask)]
            row = with_limits(row, limits(mean, rows, row["estimate"]), *sides)
        yield row


def masked_row(subset: str, rows: Columns, metric: PairMetric) -> dict[str, Any]:
    """Return a metric of pairs without an interval; n counts the pairs that it uses."""
    chosen = rows.mask(metric.mask)
    sizes = {"n": int(np.count_nonzero(chosen)), "n_clusters": rows.n_distinct("source_cluster_id", chosen)}
    return measure(subset, metric.name, metric.value, rows, **sizes)


def noise_floor(answers: Columns, draws: ClusterDraws) -> float:
    """Return the ECE that calibrated confidences reach by chance; all methods meet the same signs of the images."""
    images = answers.cluster("cluster_id", draws), len(draws.cluster_ids)
    return calibration_chance.ece_noise_floor(answers["confidence"], answers["correct"], *images, draws.names)


def _with_percentiles(row: dict[str, Any], values: np.ndarray | None) -> list[dict[str, Any]]:
    name = f"{row['metric']}_undefined_replicates"
    if values is None or len(values) == 0:
        reason = row["reason"] if values is None else None
        return [row, metric_row(row["subset"], name, reason=reason or "no replicates were asked for")]
    percentiles = interval(values)
    low, high = including(percentiles.low, percentiles.high, row["estimate"])
    count = {"metric": name, "estimate": float(percentiles.n_undefined), "reason": None}
    return [{**row, "low": low, "high": high}, {**row, **count}]

"""Every metric of groups of answers, such as sexes or hospitals: intervals, the worst group, differences to the rest.

The groups are the values of one column. Three statements are about all groups of a column and metric together:

- simultaneous intervals: all of them hold with a probability of 95%. Each is that of the group by itself at the level
  .05 / m (Bonferroni), with m the number of groups that have an interval. One multiple of all standard errors from
  joint resamples (max-t) covers too rarely, because each small group has the tails of its own Student's t.
- the worst group: it is chosen by the estimates, so that its own interval is too good. The interval is that of the
  worst group's value, whichever group it is: from the smallest lower end of the simultaneous intervals to the smallest
  upper end (the largest ends, where lower is better). It covers whenever they all hold.
- the differences of each group and all other groups, with Holm's method over the groups.

A row without a value of the column is in no group and in no rest. Groups of fewer than `FEWEST` clusters have no
interval, and count in these statements only as a part of the rest of others.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, cast

import numpy as np
import polars as pl

from dualread.errors import UndefinedMetricError
from dualread.evaluation.answer_metrics import (
    ALL_METRICS,
    ANSWER_METRICS,
    FURTHER_METRICS,
    WITH_PERCENTILES,
    WITH_REPLICATES,
)
from dualread.evaluation.columns import CellColumns, all_rows
from dualread.evaluation.contrasts import OverSeeds, tested
from dualread.evaluation.estimates import subset_rows
from dualread.evaluation.join import Joined
from dualread.evaluation.metric import AnswerMetric, Metric
from dualread.evaluation.metrics.risk_control import DELTA
from dualread.evaluation.pair_metrics import COMPARABLE, PAIR_METRICS, limits, stored_pairs
from dualread.evaluation.replicates import raw_replicates
from dualread.evaluation.samples import Resampled, Sample, mean_sample
from dualread.evaluation.statistics.bootstrap import ClusterDraws
from dualread.evaluation.statistics.proportion import ALPHA, share_interval
from dualread.evaluation.statistics.t_intervals import Limits
from dualread.evaluation.thresholds import CERTIFIED, Confidences, judged, metric_name, threshold

FEWEST = 10  # clusters of a group that has intervals
_GROUP = "group"
_METRICS: Mapping[str, Metric] = {**ALL_METRICS, **PAIR_METRICS}
_OF_DIFFERENCE = {"difference": "estimate", "difference_low": "low", "difference_high": "high"}
_OF_DIFFERENCE |= {name: name for name in ("p", "p_at_most", "p_holm", "p_holm_at_most")}
_Side = tuple[bool, str | None]  # whether it is the rest, and the group; None are the rows without one


def by_group(
    joined: Joined, groups: pl.DataFrame, draws: ClusterDraws, further: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return the rows of one column of groups, a row per group and metric.

    `groups` has sample_id, and group, a text or null; a pair is in the group of its question. The rows have group
    (null: those without a value), metric, estimate, low, high (95%, of the group by itself), simultaneous_low,
    simultaneous_high, n, n_clusters, reason; and the difference, group minus rest: difference, difference_low,
    difference_high, p, p_at_most, p_holm, p_holm_at_most, difference_reason.
    """
    named = groups.select("sample_id", _GROUP)
    tables: dict[str, Any] = {"fixed": "not computed by group", "shuffled": "not computed by group"}
    for name, rows in (("answers", joined.answers), ("pairs", joined.pairs)):
        tables[name] = (
            rows if isinstance(rows, str) else rows.join(named, on="sample_id", how="left", maintain_order="left")
        )
    of_column = _Grouped(CellColumns.of(replace(joined, **tables)), draws, further)
    metrics = {**ANSWER_METRICS, **{name: FURTHER_METRICS[name] for name in further}}
    rows = [row for name in of_column.names for row in of_column.rows(name, metrics)]
    for metric in dict.fromkeys(row["metric"] for row in rows):
        of_metric = [row for row in rows if row["metric"] == metric and row[_GROUP] is not None]
        of_column.make_simultaneous([row for row in of_metric if row["low"] is not None])
        if metric in (*WITH_REPLICATES, *COMPARABLE):
            of_column.add_differences(of_metric)
    return rows


class _Grouped:
    """The answers of each group, and of each rest.

    Attributes:
        names: The groups, sorted; None last, if there are answers without one.
    """

    def __init__(self, cell: CellColumns, draws: ClusterDraws, further: Collection[str]) -> None:
        self._cell, self._draws = cell, draws
        self.names = sorted(set(cell.answers[_GROUP]), key=lambda name: (name is None, name))
        sides = [*((False, name) for name in self.names), *((True, name) for name in self.names if name is not None)]
        self._parts = {side: cell.where(_GROUP, partial(_is_in, side)) for side in sides}
        self._n = {
            side: part.answers.n_distinct("cluster_id", all_rows(part.answers)) for side, part in self._parts.items()
        }
        large = {side: part for side, part in self._parts.items() if self._n[side] >= FEWEST}
        self._replicates = raw_replicates(large, draws, further)
        self._pairs = {} if isinstance(cell.pairs, str) else stored_pairs(cell.pairs)

    def rows(self, name: str | None, metrics: Mapping[str, AnswerMetric]) -> Iterator[dict]:
        """Yield the metrics of a group, each with the interval of this group by itself."""
        side, part = (False, name), self._parts[False, name]
        known = {metric: raw.spread_out() for (cell, metric), raw in self._replicates.items() if cell == side}
        nothing = dict.fromkeys(("simultaneous_low", "simultaneous_high", *_OF_DIFFERENCE, "difference_reason"))
        for row in subset_rows("", part, self._draws, metrics, known):
            metric = row["metric"]
            if (
                row["low"] is None
                and row["estimate"] is not None
                and metric in WITH_REPLICATES
                and self._draws.replicates
            ):
                right = part.answers["correct"]
                n = [part.answers.n_distinct("cluster_id", kind) for kind in (right, ~right)]
                row["reason"] = (
                    row["reason"] or f"no interval: {n[0]} images with right answers, {n[1]} with wrong ones"
                )
            if self._n[side] < FEWEST and (metric in WITH_REPLICATES or row["low"] is not None):
                why = row["reason"] if row["estimate"] is None else None
                few = f"no interval: {self._n[side]} images, expected at least {FEWEST}"
                row |= {"low": None, "high": None, "reason": why or few}
            if not metric.endswith("_undefined_replicates"):
                yield {_GROUP: name, **{key: row[key] for key in row if key != "subset"}, **nothing}

    def make_simultaneous(self, rows: Sequence[dict]) -> None:
        """Add the intervals that hold for all of these rows, which are about one metric."""
        for row in rows:
            low, high = self._limits(row, ALPHA / len(rows)) or (row["low"], row["high"])
            row |= {"simultaneous_low": min(low, row["low"]), "simultaneous_high": max(high, row["high"])}

    def _limits(self, row: Mapping[str, Any], alpha: float) -> Limits:
        metric, side = _METRICS[row["metric"]], (False, row[_GROUP])
        part, of_pairs = self._parts[side], cast(Any, getattr(metric, "of_pairs", None))
        if isinstance(metric, AnswerMetric) and metric.counts is not None:
            return share_interval(metric.counts(part.answers), part.answers.codes("cluster_id"), alpha)
        if metric.name in WITH_PERCENTILES:
            return self._replicates[side, metric.name].limits(alpha)
        return None if isinstance(part.pairs, str) else limits(of_pairs, part.pairs, row["estimate"], alpha)

    def add_differences(self, rows: Sequence[dict]) -> None:
        """Add the differences to the rest, of rows that are about one metric."""
        compared, differences = [], []
        for row in rows:
            sides = [(is_rest, row[_GROUP]) for is_rest in (False, True)]
            row["difference_reason"] = f"fewer than {FEWEST} images in the group or in the rest"
            if min(self._n[side] for side in sides) >= FEWEST:
                (value, sample), (of_rest, rest) = (self._side(side, row["metric"]) for side in sides)
                row["difference_reason"] = "undefined in the group or in the rest"
                if np.isfinite(value - of_rest) and sample is not None and rest is not None:
                    counts = {"n": row["n"], "n_clusters": row["n_clusters"], "short": ()}
                    both = sample.minus(rest)
                    differences.append(OverSeeds(estimate=value - of_rest, sample=both, is_signed=True, **counts))
                    compared.append(row)
        for row, columns in zip(compared, tested(differences), strict=True):
            if len(set(self.names) - {None}) == 2:  # each is the rest of the other: there is one hypothesis
                columns |= {"p_holm": columns["p"], "p_holm_at_most": columns["p_at_most"]}
            row |= {name: columns[key] for name, key in _OF_DIFFERENCE.items()}
            row["difference_reason"] = "no interval in the group or in the rest" if columns["low"] is None else None

    def _side(self, side: _Side, metric: str) -> tuple[float, Sample | None]:
        """Return the value of a metric, and what is known of it on other clusters."""
        if metric in COMPARABLE:
            if isinstance(self._cell.pairs, str):
                return np.nan, None
            inside = _is_in(side, self._cell.pairs[_GROUP])
            values = np.where(inside, self._pairs[metric].values, np.nan)
            if np.isnan(values).all():
                return np.nan, None
            return float(np.nanmean(values)), mean_sample([[replace(self._pairs[metric], values=values)]], n_images=0)
        raw, declared = self._replicates[side, metric], ALL_METRICS[metric]
        n_images = raw.images.n_rarer if declared.is_of_ranks else raw.images.in_effect.n
        is_skewed = declared.is_skewed or raw.images.in_effect.is_uneven
        return raw.estimate, Resampled(replicates=raw.spread_out(), n_images=n_images, is_skewed=is_skewed)


def certified_rows(
    answers: pl.DataFrame, validation: pl.DataFrame, target_risk_percent: Iterable[int]
) -> Iterator[dict[str, Any]]:
    """Yield the certified threshold of each group and what it keeps, chosen by its own validation answers.

    The groups share delta: all thresholds of a target risk hold with the probability 1 - delta. Both tables have group,
    cluster_id, confidence and correct; the rows have group, metric, estimate, low, high, n, n_clusters, reason.
    """
    names = sorted(set(answers[_GROUP].drop_nulls()))
    for name, percent in product(names, target_risk_percent):
        judged_on, chosen_on = (Confidences.of(frame.filter(group=name)) for frame in (answers, validation))
        cut: float | str = f"no validation answers of {name}"
        try:
            if len(chosen_on.image):
                cut = threshold(CERTIFIED, chosen_on, target_risk=percent / 100, delta=DELTA / len(names))
        except UndefinedMetricError as error:
            cut = f"validation: {error}"
        sizes = {"n": len(judged_on.image), "n_clusters": len(set(judged_on.image))}
        for kind, rate in judged(judged_on, cut).items():
            metric = {_GROUP: name, "metric": metric_name("certified_" + kind, percent), "estimate": rate.value}
            yield {**metric, "low": rate.low, "high": rate.high, **sizes, "reason": rate.reason}


def worst_groups(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield metric, group, estimate, low, high, n_groups and reason of the worst group by each metric that has a worse.

    The rows are those of `by_group`. The worst group is that of the `n_groups` that have an interval; the interval is
    that of the worst group, whichever it is.
    """
    by_metric: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if (metric := _METRICS.get(row["metric"])) and metric.better and row[_GROUP] is not None:
            by_metric.setdefault(metric.name, []).append(row)
    for name, of_metric in by_metric.items():
        known = [row for row in of_metric if row["simultaneous_low"] is not None]
        worst = {"metric": name, **dict.fromkeys((_GROUP, "estimate", "low", "high")), "n_groups": len(known)}
        if len(known) < 2:
            yield {**worst, "reason": f"{len(known)} of {len(of_metric)} groups with an interval, expected at least 2"}
            continue
        extreme = min if _METRICS[name].better == "higher" else max
        row = extreme(known, key=lambda row: row["estimate"])
        ends = {end: extreme(row[f"simultaneous_{end}"] for row in known) for end in ("low", "high")}
        yield {**worst, _GROUP: row[_GROUP], "estimate": row["estimate"], **ends, "reason": None}


def _is_in(side: _Side, labels: np.ndarray) -> np.ndarray:
    name: Any = side[1]
    inside = np.equal(labels, name)
    return ~inside & (labels != np.array(None)) if side[0] else inside

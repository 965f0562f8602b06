"""Methods across seeds, and how they differ: intervals and p-values from image resamples that all of them share.

Across seeds: one resample a replicate, the metric of every seed on it, their mean; an interval is of that mean, given
the seeds. An OOD mean resamples each data set by itself and averages them in every replicate. A difference is method
minus baseline, replicate by replicate. What lacks a member has no value but a reason.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, stdev

import numpy as np
import polars as pl

from dualread.errors import ConfigError, did_you_mean
from dualread.evaluation.replicates import KEPT
from dualread.evaluation.statistics.bootstrap import interval
from dualread.evaluation.statistics.p_values import holm, p_value

# (backbone, seed, method)
Run = tuple[str, int, str]
Cell = tuple[str, str, str, str]  # (backbone, data set, split, metric)
# The replicates, float64 [B], of one run's <dataset>/<split>/<metric>.
Read = Callable[[Run, str], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """Which method is compared with which baselines, where; `metrics` are those compared, all where there is None."""

    name: str
    method: str
    baselines: Sequence[str]
    datasets: Sequence[str]
    split: str
    metrics: Sequence[str] | None = None

    def covers(self, cell: Cell) -> bool:
        """Return whether the contrast is asked for in this cell."""
        _, dataset, split, metric = cell
        return dataset in self.datasets and split == self.split and metric in (self.metrics or KEPT)


@dataclass(frozen=True, kw_only=True)
class Value:
    """One metric of a method, or of a difference, across seeds.

    Attributes:
        estimate: The mean over seeds; None with a reason.
        by_seed: What the mean is over, and the standard deviation of.
        replicates: float64 [B], NaN where any seed has no value.
        n: Rows that a run rests on, the fewest.
        n_clusters: Their distinct source images, the fewest.
        underpowered: Some run's decisive set has too few images.
        reason: Why there is no estimate.
    """

    estimate: float | None
    by_seed: Mapping[int, float] = field(default_factory=dict)
    replicates: np.ndarray = field(default_factory=lambda: np.empty(0))
    n: int
    n_clusters: int
    underpowered: bool
    reason: str | None = None

    def minus(self, other: "Value", name: str, other_name: str) -> "Value":
        """Return the difference; the names are for its reason."""
        reasons = [f"{n}: {value.reason}" for n, value in ((name, self), (other_name, other)) if value.reason]
        found = {
            "n": min(self.n, other.n),
            "n_clusters": min(self.n_clusters, other.n_clusters),
            "underpowered": self.underpowered or other.underpowered,
        }
        if self.estimate is None or other.estimate is None:
            return Value(estimate=None, reason="; ".join(reasons), **found)
        return Value(
            estimate=self.estimate - other.estimate,
            by_seed=_side_by_side(self.by_seed, other.by_seed),
            replicates=self.replicates - other.replicates,
            **found,
        )

    def columns(self) -> dict:
        """Return the columns of the contrasts table that do not say what the value is of."""
        found = interval(self.replicates)
        return {
            "estimate": self.estimate,
            "seed_std": stdev(self.by_seed.values()) if len(self.by_seed) > 1 else None,
            "n_seeds": len(self.by_seed),
            "low": found.low,
            "high": found.high,
            "n": self.n,
            "n_clusters": self.n_clusters,
            "n_undefined": None if self.reason else found.n_undefined,
            "underpowered": self.underpowered,
            "reason": self.reason,
        }


class Results:
    """What every run of a study measured.

    Args:
        metrics: A collected metrics table, OOD means included.
        read: Reads the replicates of a run.
        members: The data sets of each OOD mean.
    """

    def __init__(self, metrics: pl.DataFrame, read: Read, members: Mapping[str, Sequence[str]]) -> None:
        self._read, self._members = read, members
        self._rows: dict[tuple[Cell, str], dict[int, dict]] = {}
        for row in metrics.filter(subset="all").sort("seed").iter_rows(named=True):
            cell = (row["backbone"], row["dataset"], row["split"], row["metric"])
            self._rows.setdefault((cell, row["method"]), {})[row["seed"]] = row
        wanted = sorted({(cell, method) for cell, method in self._rows if cell[3] in KEPT})
        self.methods: dict[Cell, list[str]] = {}
        for cell, method in wanted:
            self.methods.setdefault(cell, []).append(method)

    def value(self, cell: Cell, method: str) -> Value:
        """Return a metric of a method across its seeds."""
        rows, (backbone, dataset, split, metric) = self._rows[cell, method], cell
        flag = f"{metric.partition('_ccg_auc')[0]}_underpowered"  # of CCG only
        flags = self._rows.get(((backbone, dataset, split, flag), method), {})
        found = {
            "n": min(row["n"] for row in rows.values()),
            "n_clusters": min(row["n_clusters"] for row in rows.values()),
            "underpowered": any((row["estimate"] or 0.0) > 0 for row in flags.values()),
        }
        if reason := "; ".join(_reasons(rows)):
            return Value(estimate=None, reason=reason, **found)
        by_seed = {seed: row["estimate"] for seed, row in rows.items()}
        replicates = _mean([self._replicates((backbone, seed, method), dataset, split, metric) for seed in rows])
        return Value(estimate=mean(by_seed.values()), by_seed=by_seed, replicates=replicates, **found)

    def _replicates(self, run: Run, dataset: str, split: str, metric: str) -> np.ndarray:
        members = self._members.get(dataset, (dataset,))
        return _mean([self._read(run, f"{member}/{split}/{metric}") for member in members])


def compare(results: Results, contrasts: Sequence[Contrast]) -> list[dict]:
    """Return the rows of a contrasts table but for the study: every method's own values, then every contrast.

    Raises:
        ConfigError: A contrast names a method without results.
    """
    rows = []
    for cell, methods in results.methods.items():
        of_cell = dict(zip(("backbone", "dataset", "split", "metric"), cell, strict=True))
        values = {method: results.value(cell, method) for method in methods}
        rows += [{**of_cell, "method": method, **value.columns()} for method, value in values.items()]
        for contrast in contrasts:
            if contrast.covers(cell):
                rows += [{**of_cell, **row} for row in _differences(contrast, values)]
    return rows


def _differences(contrast: Contrast, values: Mapping[str, Value]) -> Iterator[dict]:
    if unknown := [name for name in (contrast.method, *contrast.baselines) if name not in values]:
        meant = did_you_mean(unknown[0], values)
        raise ConfigError(f"contrast {contrast.name}: no results of {unknown[0]!r}. Known: {', '.join(values)}.{meant}")
    method = values[contrast.method]
    found = [method.minus(values[name], contrast.method, name) for name in contrast.baselines]
    p_values = [p_value(value.replicates) for value in found]
    for name, value, p, adjusted in zip(contrast.baselines, found, p_values, holm(p_values), strict=True):
        names = {"contrast": contrast.name, "method": contrast.method, "baseline": name}
        yield {**names, **value.columns(), "p": p, "p_holm": adjusted}


def _side_by_side(values: Mapping[int, float], others: Mapping[int, float]) -> dict[int, float]:
    """Return the difference of every seed that both have; a single run stands beside every seed of the other."""
    if len(others) == 1:
        return {seed: value - next(iter(others.values())) for seed, value in values.items()}
    if len(values) == 1:
        return {seed: next(iter(values.values())) - other for seed, other in others.items()}
    return {seed: value - others[seed] for seed, value in values.items() if seed in others}


def _reasons(rows: Mapping[int, dict]) -> Iterator[str]:
    seeds_of: dict[str, list[int]] = {}
    for seed, row in rows.items():
        if row["estimate"] is None:
            seeds_of.setdefault(row["reason"], []).append(seed)
    for reason, seeds in seeds_of.items():
        yield f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}: {reason}"


def _mean(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return sum(arrays[1:], start=arrays[0]) / len(arrays)

"""Methods across seeds, and how they differ: intervals and p-values from image resamples that all of them share.

Each replicate is one resample of the images. The metric of every seed is computed on this resample and averaged over
the seeds; the interval of this mean holds for the given seeds. For a mean over OOD data sets, every data set is
resampled by itself, and each replicate averages the data sets. A difference is method minus baseline, replicate by
replicate. Where a seed or a data set has no value, the mean has none either and gives the reason.
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
from dualread.specs.metrics import Contrast

# (backbone, seed, method)
Run = tuple[str, int, str]
Cell = tuple[str, str, str, str]  # (backbone, data set, split, metric)
# The replicates, float64 [B], of one run's <dataset>/<split>/<metric>.
Read = Callable[[Run, str], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Value:
    """One metric of a method, or of a difference, across seeds.

    Attributes:
        estimate: The mean over seeds; None with a reason.
        by_seed: The value of every seed.
        replicates: float64 [B], NaN where a seed has no value.
        n: The smallest number of rows of any run.
        n_clusters: The smallest number of distinct source images of any run.
        underpowered: Whether the decisive set of any run has too few images.
        reason: Why there is no estimate, or None.
    """

    estimate: float | None
    by_seed: Mapping[int, float] = field(default_factory=dict)
    replicates: np.ndarray = field(default_factory=lambda: np.empty(0))
    n: int
    n_clusters: int
    underpowered: bool
    reason: str | None = None

    def minus(self, other: "Value", name: str, other_name: str) -> "Value":
        """Return self minus other; a reason for no value mentions the two names."""
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
        """Return the columns of the contrasts table that hold the value."""
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
    """The metrics and replicates of every run of a study.

    Args:
        metrics: A collected metrics table, including the means over OOD data sets.
        read: Returns the replicates of a run.
        members: The data sets of each OOD mean.
        compared: The metrics that have replicates.
    """

    def __init__(
        self,
        metrics: pl.DataFrame,
        read: Read,
        members: Mapping[str, Sequence[str]],
        compared: Sequence[str] = KEPT,
    ) -> None:
        self._read, self._members = read, members
        self._rows: dict[tuple[Cell, str], dict[int, dict]] = {}
        for row in metrics.filter(subset="all").sort("seed").iter_rows(named=True):
            cell = (row["backbone"], row["dataset"], row["split"], row["metric"])
            self._rows.setdefault((cell, row["method"]), {})[row["seed"]] = row
        wanted = sorted({(cell, method) for cell, method in self._rows if cell[3] in compared})
        self.methods: dict[Cell, list[str]] = {}
        for cell, method in wanted:
            self.methods.setdefault(cell, []).append(method)

    def value(self, cell: Cell, method: str) -> Value:
        """Return the metric of `cell` across the seeds of a method."""
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
    """Return the rows of a contrasts table, without the column `study`.

    Each cell has a row per method, then a row per contrast and baseline.

    Raises:
        ConfigError: A contrast names a method without results.
    """
    rows = []
    for cell, methods in results.methods.items():
        of_cell = dict(zip(("backbone", "dataset", "split", "metric"), cell, strict=True))
        values = {method: results.value(cell, method) for method in methods}
        rows += [{**of_cell, "method": method, **value.columns()} for method, value in values.items()]
        for contrast in contrasts:
            if _covers(contrast, cell):
                rows += [{**of_cell, **row} for row in _differences(contrast, values)]
    return rows


def _covers(contrast: Contrast, cell: Cell) -> bool:
    """Return whether the contrast is asked for in this cell."""
    _, dataset, split, metric = cell
    return (
        dataset in contrast.datasets
        and split == contrast.split
        and (contrast.metrics is None or metric in contrast.metrics)
    )


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
    """Return the difference for every seed that both have; a single run is compared with every seed of the other."""
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

"""Mean and sample standard deviation over seeds of every value in a metrics table."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, stdev
from typing import NamedTuple

import polars as pl

# A CCG value is marked with a dagger if this metric is positive in any run, or in any data set of an OOD mean.
_UNDERPOWERED = {
    f"{name}_ccg_auc": f"{name}_underpowered"
    for name in ("natural", "strict", "fixed_prefix", "strict_same_answer", "shuffled")
}
# The reason why a table cannot compute a per-seed quantity from published values.
UNKNOWN_SEEDS = "the values of single seeds are not known"


class Key(NamedTuple):
    """The backbone, data set, subset, method and metric of a value."""

    backbone: str
    dataset: str
    subset: str
    method: str
    metric: str


@dataclass(frozen=True, kw_only=True)
class Value:
    """A mean over runs.

    Attributes:
        mean: None if any run is missing or undefined: a mean is never over a part of the runs.
        std: Sample standard deviation (ddof 1); None with one run.
        n_runs: Number of runs that the mean is over, or would be over.
        n: Number of rows behind each run's value; None if unknown or different between runs.
        underpowered: A CCG value on fewer than 30 source or donor images.
        reason: Why the mean is None.
        by_seed: The value of each seed; empty if the mean is None, and for published values.
    """

    mean: float | None
    std: float | None
    n_runs: int
    n: int | None
    underpowered: bool = False
    reason: str | None = None
    by_seed: Mapping[int, float] = field(default_factory=dict)


def summarize(metrics: pl.DataFrame, *, seeds: Mapping[str, Sequence[int]], split: str = "test") -> dict[Key, Value]:
    """Return the mean over seeds of every value in `metrics`, a metrics table of one study.

    A method's runs are the `seeds` of its backbone, or the one run with seed 0 of an actor that has no seeds.
    """
    rows: dict[Key, dict[int, dict]] = defaultdict(dict)
    runs: dict[tuple[str, str], set[int]] = defaultdict(set)
    for row in metrics.filter(pl.col("split") == split).iter_rows(named=True):
        rows[Key(**{name: row[name] for name in Key._fields})][row["seed"]] = row
        runs[row["backbone"], row["method"]].add(row["seed"])
    expected = {run: (0,) if 0 in found else tuple(seeds[run[0]]) for run, found in runs.items()}
    return {key: _value(found, expected[key.backbone, key.method], _flags(rows, key)) for key, found in rows.items()}


def _flags(rows: Mapping[Key, dict[int, dict]], key: Key) -> Mapping[int, dict]:
    return rows.get(key._replace(metric=_UNDERPOWERED[key.metric]), {}) if key.metric in _UNDERPOWERED else {}


def _value(found: Mapping[int, dict], seeds: tuple[int, ...], flags: Mapping[int, dict]) -> Value:
    chosen = [found[seed] for seed in seeds if seed in found]
    sizes = {row["n"] for row in chosen}
    n = sizes.pop() if len(sizes) == 1 else None
    if reason := _reason(found, seeds):
        return Value(mean=None, std=None, n_runs=len(seeds), n=n, reason=reason)
    by_seed = {row["seed"]: row["estimate"] for row in chosen}
    estimates = list(by_seed.values())
    return Value(
        mean=mean(estimates),
        std=stdev(estimates) if len(estimates) > 1 else None,
        n_runs=len(seeds),
        n=n,
        by_seed=by_seed,
        underpowered=any((row["estimate"] or 0.0) > 0 for row in flags.values()),
    )


def _reason(found: Mapping[int, dict], seeds: tuple[int, ...]) -> str | None:
    """Return which runs are missing or undefined, and why; None if all runs have a value."""
    if not seeds:
        return "no run has a seed that the table shows"
    seeds_of: dict[str, list[str]] = defaultdict(list)
    for seed in seeds:
        if seed not in found:
            seeds_of["missing"].append(str(seed))
        elif found[seed]["estimate"] is None:
            seeds_of[found[seed]["reason"]].append(str(seed))
    parts = (f"seed{'s' if len(of) > 1 else ''} {', '.join(of)}: {reason}" for reason, of in seeds_of.items())
    return "; ".join(parts) or None

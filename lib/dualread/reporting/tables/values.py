"""Mean and sample standard deviation over seeds of every value that a table shows: a metric, or a contrast."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean, stdev
from typing import Any, NamedTuple

import polars as pl

from dualread.evaluation.metrics.calibration_chance import is_by_chance
from dualread.evaluation.metrics.grounding import FEW_IMAGES_OF
from dualread.reporting.tables.entries import DASH, Interval, Number

# A CCG value of these has a dagger if `FEW_IMAGES_OF` a side is positive in any run, or in any data set of an OOD mean.
_KINDS = {f"{name}_ccg_auc": name for name in ("natural", "strict", "fixed_prefix", "strict_same_answer", "shuffled")}
# `ccg_auc` is under another condition, whose images are those of the sources, changed.
_KINDS |= {"supported_on_both_ccg_auc": "supported_on_both", "ccg_auc": "ccg"}
# The reason why a table cannot compute a per-seed quantity from published values.
UNKNOWN_SEEDS = "the values of single seeds are not known"


class Key(NamedTuple):
    """What a value is of. Only a difference has a baseline, which is what its method is compared with in a contrast."""

    backbone: str
    dataset: str
    subset: str
    method: str
    metric: str
    contrast: str | None = None
    baseline: str | None = None


@dataclass(frozen=True, kw_only=True)
class Value:
    """A mean over runs."""

    mean: float | None  # None if any run is missing or undefined: a mean is never over a part of the runs
    std: float | None  # sample standard deviation (ddof 1); None with one run
    n_runs: int  # that the mean is over, or would be over
    n: int | None  # rows behind each run's value; None if unknown or different between runs
    short: tuple[str, ...] = ()  # of a CCG value, the sides (source, donor) with fewer than 30 images in any run
    detectable: float | None = None  # the largest of the runs' `<kind>_detectable`; None if undefined in a run
    ties: float | None = None  # of a CCG value, the largest share of pairs with equal confidences in any run
    by_chance: bool = False  # whether an ECE is, in every run, one that calibrated confidences reach by chance
    reason: str | None = None  # why the mean is None
    by_seed: Mapping[int, float] = field(default_factory=dict)  # empty if the mean is None, and for published values
    row: Mapping[str, Any] = field(default_factory=dict)  # of a contrasts table, with intervals and p-values; or empty


class _Run(NamedTuple):
    estimate: float | None
    n: int | None
    reason: str | None


class Values(Mapping[Key, Value]):
    """The values of a metrics table. Each is computed when it is asked for: a table shows few of them."""

    def __init__(self, runs: Mapping[Key, Mapping[int, _Run]], seeds: Mapping[tuple[str, str], Sequence[int]]) -> None:
        """`runs` are by seed; `seeds` are those that count, by (backbone, method)."""
        self._runs, self._seeds = runs, seeds
        self._known: dict[Key, Value] = {}

    def __getitem__(self, key: Key) -> Value:
        if key not in self._known:
            runs = self._runs[key]
            self._known[key] = self._marked(key, runs)
        return self._known[key]

    def __contains__(self, key: object) -> bool:
        return key in self._runs

    def __iter__(self) -> Iterator[Key]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def _marked(self, key: Key, runs: Mapping[int, _Run]) -> Value:
        seeds = self._seeds[key.backbone, key.method]
        value = _mean_over_seeds(runs, seeds)
        if value.mean is not None and key.metric == "ece15":
            floors = self._estimates(key, "ece15_noise_floor", seeds)
            values = value.by_seed.values()
            below = len(floors) == len(values) and all(map(is_by_chance, values, floors))
            return replace(value, by_chance=below)
        if value.mean is None or (kind := _KINDS.get(key.metric)) is None:
            return value
        short = [side for side, flag in FEW_IMAGES_OF.items() if any(self._estimates(key, f"{kind}_{flag}", seeds))]
        detectable = self._estimates(key, f"{kind}_detectable", seeds)
        largest = max(detectable) if len(detectable) == len(seeds) else None
        ties = max(self._estimates(key, f"{kind}_ties", seeds), default=None)
        return replace(value, short=tuple(short), detectable=largest, ties=ties)

    def _estimates(self, key: Key, metric: str, seeds: Sequence[int]) -> list[float]:
        runs = self._runs.get(key._replace(metric=metric), {})
        estimates = [runs[seed].estimate for seed in seeds if seed in runs]
        return [estimate for estimate in estimates if estimate is not None]


def summarize(metrics: pl.DataFrame, *, seeds: Mapping[str, Sequence[int]], split: str = "test") -> Values:
    """Return the mean over seeds of every value in `metrics`, a metrics table of one study.

    A method's runs are the `seeds` of its backbone, or the one run with seed 0 of an actor that has no seeds.
    """
    runs: dict[Key, dict[int, _Run]] = defaultdict(dict)
    seeds_of: dict[tuple[str, str], set[int]] = defaultdict(set)
    of_split = metrics.filter(pl.col("split") == split)
    for *key, seed, estimate, n, reason in of_split.select(*Key._fields[:5], "seed", *_Run._fields).iter_rows():
        runs[key := Key(*key)][seed] = _Run(estimate, n, reason)
        seeds_of[key.backbone, key.method].add(seed)
    return Values(dict(runs), {run: (0,) if 0 in had else tuple(seeds[run[0]]) for run, had in seeds_of.items()})


def _mean_over_seeds(runs: Mapping[int, _Run], seeds: Sequence[int]) -> Value:
    chosen = {seed: runs[seed] for seed in seeds if seed in runs}
    sizes = {run.n for run in chosen.values()}
    n = sizes.pop() if len(sizes) == 1 else None
    by_seed = {seed: run.estimate for seed, run in chosen.items() if run.estimate is not None}
    if reason := _reason(runs, seeds):
        return Value(mean=None, std=None, n_runs=len(seeds), n=n, reason=reason)
    return Value(
        mean=mean(by_seed.values()),
        std=stdev(by_seed.values()) if len(by_seed) > 1 else None,
        n_runs=len(seeds),
        n=n,
        by_seed=by_seed,
    )


def _reason(runs: Mapping[int, _Run], seeds: Sequence[int]) -> str | None:
    """Return which runs are missing or undefined, and why; None if all runs have a value."""
    if not seeds:
        return "no run has a seed that the table shows"
    seeds_of: dict[str, list[str]] = defaultdict(list)
    for seed in seeds:
        if seed not in runs:
            seeds_of["missing"].append(str(seed))
        elif runs[seed].estimate is None:
            seeds_of[runs[seed].reason or "undefined"].append(str(seed))
    parts = (f"seed{'s' if len(names) > 1 else ''} {', '.join(names)}: {reason}" for reason, names in seeds_of.items())
    return "; ".join(parts) or None


def number(value: float, digits: int = 3) -> str:
    """Return `value` with `digits` decimals and without a leading zero, as the paper prints: .952, 1.000, -.013."""
    text = f"{value:.{digits}f}"
    if float(text) == 0.0:
        text = text.removeprefix("-")
    return text.replace("0.", ".", 1) if text.removeprefix("-").startswith("0.") else text


def signed(value: float, digits: int = 3) -> str:
    """Return a difference with its sign: +.130, -.016; .000 where it rounds to zero."""
    text = number(value, digits)
    return text if text.startswith("-") or float(text) == 0.0 else f"+{text}"


def p_text(p: float, *, at_most: bool = False) -> str:
    """Return an adjusted p-value in print: .034, 1, <.001; with the sign for "at most" where it is a limit."""
    if p < 0.001:
        return "<.001"
    return f"{'≤' if at_most else ''}{number(p).removesuffix('.000')}"


def rounded(value: float) -> float:
    """Return `value` rounded as printed, so that values that look equal are equal."""
    return float(f"{value:.3f}") + 0.0


def printed(value: Value, digits: int = 3, *, sign: bool = False, bold: bool = False) -> Number | str:
    """Return a value as a table prints it, the mean in bold where `bold`; a dash where it is undefined."""
    if value.mean is None:
        return DASH
    # A count that is the same in every run needs no deviation.
    spread = "" if value.std is None or (digits, value.std) == (0, 0) else number(value.std, digits)
    mean = signed(value.mean, digits) if sign else number(value.mean, digits)
    return Number(mean, spread, bold, "".join(side[0] for side in value.short), value.by_chance)


def limits(value: Value, ends: str = "") -> Interval | str:
    """Return the interval of a value of contrasts, with signs where it is a difference's; a dash if it has none.

    `ends` is "" for the interval of these seeds, "_retrained" for that of retrained actors.
    """
    low, high = value.row[f"low{ends}"], value.row[f"high{ends}"]
    if low is None:
        return DASH
    show = number if value.row["baseline"] is None else signed
    return Interval(show(low), show(high))

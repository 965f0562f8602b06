"""Methods across seeds, and how they differ: intervals and p-values, for these seeds and for retrained actors.

The estimate is the mean over seeds. "For these seeds", only the images are a sample: the interval says what other
images would give for the same trained actors. "Retrained", the seeds are a sample too: the variance between them is
added, but for what seeds and images have together, which is in both (see `statistics.jackknife.over_retrained_seeds`).
Where a seed or a data set has no value, the mean has none either and gives the reason.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import sub
from statistics import mean, stdev
from typing import TypeVar

import polars as pl

from dualread.errors import ConfigError, did_you_mean
from dualread.evaluation.answer_metrics import ALL_METRICS, IMAGES_IN_EFFECT
from dualread.evaluation.metrics.grounding import FEW_IMAGES_OF
from dualread.evaluation.samples import Read, Sample, mean_sample, seed_by_image
from dualread.evaluation.statistics.clusters import InEffect
from dualread.evaluation.statistics.jackknife import Variance, over_retrained_seeds
from dualread.evaluation.statistics.p_values import P, holm
from dualread.evaluation.statistics.t_intervals import difference_interval, difference_p_value, logit_interval
from dualread.schema.metrics import ContrastSpec

# (backbone, seed, method)
Run = tuple[str, int, str]
Cell = tuple[str, str, str, str]  # (backbone, data set, split, metric)
# Means over seeds round, so that what does not vary can have a variance of about 1e-33.
_ROUNDED = 1e-24
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class OverSeeds:
    """One metric of a method, or of a difference, across seeds.

    Attributes:
        estimate: The mean over seeds; None with a reason.
        by_seed: The value of every seed.
        sample: What is known about the mean over other images; None without an estimate.
        samples: The same for the value of every seed; they say how far images move seeds together.
        is_signed: Whether it can be negative, as method minus baseline.
        largest: Its largest possible value, or that of a side of a difference.
        n: The smallest number of rows of any run.
        n_clusters: The smallest number of distinct source images of any run.
        short: The sides, source and donor, of which the decisive set of any run has too few images.
        reason: Why there is no estimate, or no interval; None if there are both.
    """

    estimate: float | None
    by_seed: Mapping[int, float] = field(default_factory=dict)
    sample: Sample | None = None
    samples: Mapping[int, Sample] = field(default_factory=dict)
    is_signed: bool = False
    largest: float = 1.0
    n: int
    n_clusters: int
    short: tuple[str, ...]
    reason: str | None = None

    def minus(self, other: "OverSeeds", name: str, other_name: str) -> "OverSeeds":
        """Return self minus other; a reason for no value mentions the two names."""
        reasons = [f"{n}: {value.reason}" for n, value in ((name, self), (other_name, other)) if value.reason]
        counts = {
            "is_signed": True,
            "largest": max(self.largest, other.largest),
            "n": min(self.n, other.n),
            "n_clusters": min(self.n_clusters, other.n_clusters),
            "short": tuple(side for side in FEW_IMAGES_OF if side in {*self.short, *other.short}),
        }
        if self.estimate is None or other.estimate is None or self.sample is None or other.sample is None:
            return OverSeeds(estimate=None, reason="; ".join(reasons), **counts)
        return OverSeeds(
            estimate=self.estimate - other.estimate,
            reason="; ".join(reasons) or None,
            by_seed=_side_by_side(self.by_seed, other.by_seed, sub),
            sample=self.sample.minus(other.sample),
            samples=_side_by_side(self.samples, other.samples, lambda first, second: first.minus(second)),
            **counts,
        )

    def p(self) -> P | None:
        """Return the p-value of "no difference" for these seeds."""
        return None if self.estimate is None or self.sample is None else self.sample.p(self.estimate)

    def p_retrained(self) -> P | None:
        """Return the p-value between retrained methods, at least the one for these seeds; None with one seed."""
        variance, p_over_images = self._variance_retrained, self.p()
        if self.estimate is None or self.sample is None or variance is None or p_over_images is None:
            return None
        p = difference_p_value(self.estimate, variance, self.sample.carriers())
        return None if p is None else P(max(p, p_over_images.value), at_most=False)

    @cached_property
    def _variance_retrained(self) -> Variance | None:
        of_images = None if self.sample is None else self.sample.variance()
        if of_images is None or len(self.by_seed) < 2:
            return None
        return over_retrained_seeds(of_images, list(self.by_seed.values()), seed_by_image(list(self.samples.values())))

    def columns(self) -> dict:
        """Return the columns of the contrasts table that hold the value."""
        low, high, low_retrained, high_retrained, n_undefined = (None,) * 5
        if self.estimate is not None and self.sample is not None:
            low, high = self.sample.limits(self.estimate, self.is_signed) or (None, None)
            n_undefined = self.sample.n_undefined()
            if low is not None and high is not None and (variance := self._variance_retrained):
                interval = logit_interval
                if self.is_signed or self.largest > 1.0:
                    interval = partial(difference_interval, low=-self.largest, high=self.largest)
                wider = interval(self.estimate, variance) if variance.value > _ROUNDED else None
                low_retrained, high_retrained = (min(low, wider[0]), max(high, wider[1])) if wider else (low, high)
        return {
            "estimate": self.estimate,
            "seed_std": stdev(self.by_seed.values()) if len(self.by_seed) > 1 else None,
            "n_seeds": len(self.by_seed),
            "low": low,
            "high": high,
            "low_retrained": low_retrained,
            "high_retrained": high_retrained,
            "n": self.n,
            "n_clusters": self.n_clusters,
            "n_undefined": n_undefined,
            "short": " and ".join(self.short) or None,
            "reason": self.reason,
        }


class Results:
    """The metrics of every run of a study, with the means over OOD data sets, and what comparisons need of them.

    `read` returns the sample of a run's <dataset>/<split>/<metric>, `members` has the data sets of each OOD mean, and
    `compared` the metrics that can be compared.
    """

    def __init__(
        self, metrics: pl.DataFrame, read: Read, members: Mapping[str, Sequence[str]], compared: Sequence[str]
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

    def value(self, cell: Cell, method: str) -> OverSeeds:
        """Return the metric of `cell` across the seeds of a method."""
        rows, (backbone, dataset, split, metric) = self._rows[cell, method], cell
        declared = ALL_METRICS.get(metric)  # None: a metric of donor pairs
        fields = {
            "n": min(row["n"] for row in rows.values()),
            "n_clusters": min(row["n_clusters"] for row in rows.values()),
            "short": self._short(cell, method),
        }
        if reason := "; ".join(_reasons(rows)):
            return OverSeeds(estimate=None, reason=reason, **fields)
        by_seed = {seed: row["estimate"] for seed, row in rows.items()}
        members = self._members.get(dataset, (dataset,))
        places = [(backbone, member, split, IMAGES_IN_EFFECT.name) for member in members] if declared else []
        counted = (row for place in places for row in self._rows.get((place, method), {}).values())
        shown = [InEffect(number=row["estimate"], n=row["n_clusters"]) for row in counted]
        runs = {
            seed: [self._read((backbone, seed, method), f"{member}/{split}/{metric}") for member in members]
            for seed in rows
        }
        known = {
            "n_images": sum(self._carriers((backbone, member, split, metric), method) for member in members),
            "is_skewed": declared is not None and (declared.is_skewed or any(images.is_uneven for images in shown)),
        }
        fields["sample"] = mean_sample(list(zip(*runs.values(), strict=True)), **known)
        fields["samples"] = {seed: mean_sample([[run] for run in of_seed], **known) for seed, of_seed in runs.items()}
        of_members = (self._rows.get(((backbone, member, split, metric), method), {}) for member in members)
        named = next((row["reason"] for of_member in of_members for row in of_member.values() if row["reason"]), None)
        fields["reason"] = next((named or images.reason for images in shown if images.reason), None)
        if declared:
            fields |= {"is_signed": declared.is_signed, "largest": declared.largest}
        return OverSeeds(estimate=mean(by_seed.values()), by_seed=by_seed, **fields)

    def _carriers(self, cell: Cell, method: str) -> int:
        """Return the number of images that can carry a difference: of ranks, those with the rarer kind of answer."""
        *_, metric = cell
        counted = [row["n_clusters"] for row in self._rows[cell, method].values()]
        if (declared := ALL_METRICS.get(metric)) and declared.is_of_ranks:
            backbone, dataset, split, _ = cell
            for kind in ("images_with_right", "images_with_wrong"):
                rows = self._rows[(backbone, dataset, split, kind), method].values()
                counted += [int(row["estimate"]) for row in rows]
        return min(counted)

    def _short(self, cell: Cell, method: str) -> tuple[str, ...]:
        backbone, dataset, split, metric = cell
        flagged = {}
        for side, flag in FEW_IMAGES_OF.items():
            name = f"{metric.removesuffix('_ccg_auc')}_{flag}"
            flagged[side] = self._rows.get(((backbone, dataset, split, name), method), {}).values()
        return tuple(side for side, rows in flagged.items() if any((row["estimate"] or 0.0) > 0 for row in rows))


def compare(results: Results, contrasts: Sequence[ContrastSpec]) -> list[dict]:
    """Return the rows of a contrasts table, without the column `study`: per cell the methods, then the contrasts.

    Raises:
        ConfigError: A contrast names a method without results.
    """
    rows = []
    for cell, methods in results.methods.items():
        of_cell = dict(zip(("backbone", "dataset", "split", "metric"), cell, strict=True))
        values = {method: results.value(cell, method) for method in methods}
        rows += [{**of_cell, "method": method, **value.columns()} for method, value in values.items()]
        for contrast in contrasts:
            is_compared = contrast.metrics is None or of_cell["metric"] in contrast.metrics
            if is_compared and of_cell["dataset"] in contrast.datasets and of_cell["split"] == contrast.split:
                rows += [{**of_cell, **row} for row in _differences(contrast, values)]
    return rows


def _differences(contrast: ContrastSpec, values: Mapping[str, OverSeeds]) -> Iterator[dict]:
    if unknown := [name for name in (contrast.method, *contrast.baselines) if name not in values]:
        meant = did_you_mean(unknown[0], values)
        raise ConfigError(f"contrast {contrast.name}: no results of {unknown[0]!r}. Known: {', '.join(values)}.{meant}")
    method = values[contrast.method]
    differences = [method.minus(values[name], contrast.method, name) for name in contrast.baselines]
    for name, columns in zip(contrast.baselines, tested(differences), strict=True):
        yield {"contrast": contrast.name, "method": contrast.method, "baseline": name, **columns}


def tested(differences: Sequence[OverSeeds]) -> Iterator[dict]:
    """Yield the columns of each difference with its p-values; Holm's method covers all of them together."""
    over_images, retrained = [value.p() for value in differences], [value.p_retrained() for value in differences]
    p_values = zip(over_images, holm(over_images), retrained, holm(retrained), strict=True)
    for value, (p, adjusted, p_retrained, adjusted_retrained) in zip(differences, p_values, strict=True):
        yield {
            **value.columns(),
            **{"p": p and p.value, "p_at_most": p and p.at_most},
            **{"p_holm": adjusted and adjusted.value, "p_holm_at_most": adjusted and adjusted.at_most},
            "p_retrained": p_retrained and p_retrained.value,
            "p_holm_retrained": adjusted_retrained and adjusted_retrained.value,
        }


def _side_by_side(values: Mapping[int, _T], others: Mapping[int, _T], minus: Callable[[_T, _T], _T]) -> dict[int, _T]:
    """Return the difference for every seed that both have; a single run is compared with every seed of the other."""
    if len(others) == 1:
        return {seed: minus(value, next(iter(others.values()))) for seed, value in values.items()}
    if len(values) == 1:
        return {seed: minus(next(iter(values.values())), other) for seed, other in others.items()}
    return {seed: minus(value, others[seed]) for seed, value in values.items() if seed in others}


def _reasons(rows: Mapping[int, dict]) -> Iterator[str]:
    seeds_of: dict[str, list[int]] = {}
    for seed, row in rows.items():
        if row["estimate"] is None:
            seeds_of.setdefault(row["reason"], []).append(seed)
    for reason, seeds in seeds_of.items():
        yield f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}: {reason}"

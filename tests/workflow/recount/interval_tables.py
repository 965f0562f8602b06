"""The tables of intervals and differences: points from rows, ends from the stored resamples and from our own."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import mean, stdev
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import norm

from tests.workflow.recount.cells import DASH, closest, differ, mark, text
from tests.workflow.recount.left_out import Spread, interval, of_datasets, over_seeds, p_value
from tests.workflow.recount.left_out import carriers as count_carriers
from tests.workflow.recount.resampling import FALSE_ALARM, PERCENTILES, Resamples, implausible, is_uneven
from tests.workflow.recount.study import Run
from tests.workflow.recount.values import CCG, Values

SQUARED_ERROR = "squared_calibration_error"
OF_ANSWERS = ("auroc", "brier", SQUARED_ERROR)
OF_PAIRS = {False: ("natural_ccg_auc", "strict_ccg_auc"), True: ("fixed_prefix_ccg_auc", "supported_on_both_ccg_auc")}
TABLES = ("paired", "significance", "intervals")
# The paper's table has no such column, and that of significance has room for one.
_NOT_SHOWN = (("paired", SQUARED_ERROR),)
_WITHOUT_ROOM = (("significance", "ood"),)
_KEY = ("backbone", "contrast", "dataset", "split", "metric", "method", "baseline")
_COLUMNS = (
    *("mean", "std", "n_seeds", "low", "high", "low_retrained", "high_retrained", "p", "p_at_most", "p_holm"),
    *("p_holm_at_most", "p_retrained", "p_holm_retrained", "n", "n_clusters", "n_undefined", "short"),
)
Row = dict[str, Any]
Limits = tuple[float | None, float | None]


@dataclass(kw_only=True)
class Intervals:
    """The rows of the interval tables as they have to be."""

    values: Values
    resamples: Resamples = field(init=False)
    _known: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.resamples = Resamples(values=self.values)
        path = self.values.study.results / "contrasts" / "MANIFEST.json"
        compared = json.loads(path.read_text())["spec"]["contrasts"] if path.exists() else []
        self._contrasts = {c["name"]: c for c in compared}

    def rows(self, table: str) -> Iterator[tuple[Row, str, np.ndarray | None]]:
        """Return each row, the place that it stands at, and the same in resamples of our own."""
        layout = self.values.study.layout(table)
        shown = [entry["name"] for entry in layout["methods"]]
        outside = [entry["name"] for entry in layout["datasets"] if not entry["id"]]
        for backbone in (entry["name"] for entry in layout["backbones"]):
            if table == "intervals":
                asked = [(None, method, None, "test") for method in shown]
                places = [self.values.study.in_distribution, *outside, "ood"]
            else:
                contrasts = [self._contrasts[name] for name in layout["contrasts"]]
                asked = [(c["name"], c["method"], b, c["split"]) for c in contrasts for b in c["baselines"]]
                places = [self.values.study.in_distribution, *(outside if table == "paired" else []), "ood"]
            for contrast, method, baseline, split in asked:
                for place in places if split == "test" else places[:1]:
                    for metric in (*OF_ANSWERS, *OF_PAIRS[self.values.study.of_claims]):
                        if (metric == SQUARED_ERROR and (table, place) in _WITHOUT_ROOM) or (
                            table,
                            metric,
                        ) in _NOT_SHOWN:
                            continue
                        dataset = place if place != "ood" else "ood_ccg" if "ccg" in metric else "ood6"
                        if contrast is None or dataset in self._contrasts[contrast]["datasets"]:
                            key = (backbone, contrast, dataset, split, metric, method, baseline)
                            yield from self._row(table, dict(zip(_KEY, key, strict=True)), place)

    def _row(self, table: str, key: Row, place: str) -> Iterator[tuple[Row, str, np.ndarray | None]]:
        row = {**key, **self._numbers(key), **self.adjusted(key)}
        own = None
        if row["mean"] is not None and key["metric"] not in CCG:
            sides = [key["method"], *([key["baseline"]] if key["baseline"] else [])]
            where = (key["dataset"], key["split"], key["metric"])
            parts = [self.resamples.of_method(key["backbone"], side, *where) for side in sides]
            own = parts[0] - parts[1] if key["baseline"] else parts[0]
        yield row, place, own

    def _numbers(self, key: Row) -> Row:
        """Return every column of a row that is not its key."""
        known = tuple(key.values())
        if known not in self._known:
            self._known[known] = self._computed(key)
        return self._known[known]

    def _computed(self, key: Row) -> Row:
        sides = [side for side in (key["method"], key["baseline"]) if side]
        where = (key["dataset"], key["metric"], key["split"])
        runs = [self.values.study.runs[key["backbone"], side].values() for side in sides]
        sizes = [self._size(run, *where) for of_side in runs for run in of_side]
        short = set().union(*(self.values.short(run, *where) for of_side in runs for run in of_side))
        found = {
            "n": min(n for n, _ in sizes),
            "n_clusters": min(n for _, n in sizes),
            "short": " and ".join(side for side in ("source", "donor") if side in short) or None,
        }
        points = [self.values.by_seed(key["backbone"], side, *where[:2], split=where[2]) for side in sides]
        if any(None in of_side.values() for of_side in points):
            return {**dict.fromkeys(_COLUMNS), **found, "n_seeds": 0}
        by_seed = points[0]
        if len(sides) == 2:
            seeds = points[0].keys() & points[1].keys() or points[0].keys() ^ points[1].keys()
            by_seed = {s: _of_seed(points[0], s) - _of_seed(points[1], s) for s in seeds - {0} or seeds}
        value = mean(points[0].values()) - (mean(points[1].values()) if len(sides) == 2 else 0.0)
        moments = {
            "mean": value,
            "std": stdev(by_seed.values()) if len(by_seed) > 1 else None,
            "n_seeds": len(by_seed),
        }
        known = self._over_pairs if where[1] in CCG else self._over_resamples
        given, of_images, carriers = known(runs, where, value)
        if of_images is not None and len(by_seed) > 1:
            of_sides = [self.values.study.runs[key["backbone"], side] for side in sides]
            seeds = [[of.get(seed) or of[0] for of in of_sides] for seed in by_seed]
            of_images = replace(of_images, together=self._together(seeds, where))
        signed, ends = len(sides) == 2 or where[1] == SQUARED_ERROR, (given.get("low"), given.get("high"))
        retrained = _retrained(value, by_seed, of_images, carriers, signed=signed, given=ends)
        if retrained.get("p_retrained") is not None:
            retrained["p_retrained"] = max(retrained["p_retrained"], given["p"])
        return {**dict.fromkeys(_COLUMNS), **found, **moments, **given, **retrained}

    def _together(self, seeds: Sequence[Sequence[Run]], where: tuple[str, str, str]) -> float:
        """Return what seeds and images have together, of the variance of a mean over seeds: how two seeds move apart.

        Args:
            seeds: For each seed, the run of the method, and that of the baseline.
            where: Data set, metric and split.
        """
        dataset, metric, split = where
        members, squares = self.values.study.paired if dataset == "ood_ccg" else [dataset], []
        for one, other in combinations(seeds, 2):
            runs = [*one, *other]
            if metric in CCG:
                pairs = [[[self.values.decisive(run, at, metric, split=split)] for at in members] for run in runs]
                squares.append(of_datasets(pairs).variance)
            else:
                signs = (1, -1, -1, 1) if len(runs) == 4 else (1, -1)
                stored = [sign * self._stored(run, *where) for sign, run in zip(signs, runs, strict=True)]
                squares.append(float(np.nanvar(np.sum(stored, axis=0), ddof=1)))
        return sum(squares) / (len(seeds) ** 2 * (len(seeds) - 1))

    def _over_resamples(
        self, runs: Sequence[Iterable[Run]], where: tuple[str, str, str], value: float
    ) -> tuple[Row, Spread | None, int | None]:
        """Return percentiles and p-value of the stored resamples, their variance, and how many images carry them."""
        stored = [np.mean([self._stored(run, *where) for run in of_side], axis=0) for of_side in runs]
        replicates = stored[0] - stored[1] if len(stored) == 2 else stored[0]
        defined = replicates[~np.isnan(replicates)]
        counts = {"n_undefined": len(replicates) - len(defined), "n_drawn": len(replicates)}
        if len(defined) == 0:
            return counts, None, None
        low, high = map(float, np.percentile(defined, PERCENTILES))
        n_images = min(self._images(of_side, *where) for of_side in runs)
        variance = float(np.var(defined, ddof=1))
        spread = Spread(variance=variance if variance > 1e-25 else 0.0, df=n_images - 1.0, images=float(n_images))
        uneven = len(stored) == 2 and any(self._is_uneven(run, *where) for of_side in runs for run in of_side)
        half = norm.ppf(0.975) * np.sqrt(variance) if uneven else 0.0
        row = {"low": min(low, value - half), "high": max(high, value + half), **counts}
        if len(stored) == 1:
            return row, spread, None
        p, fewest = _p_value(defined), 2 * 0.5**n_images
        if uneven and abs(value) > 1e-12:
            fewest = max(fewest, 2 * norm.sf(abs(value) / np.sqrt(max(variance, 1e-300))))
        at_most = p == 2 / (len(defined) + 1) and p >= fewest and p < 1
        return {**row, "p": max(p, min(1.0, fewest)), "p_at_most": at_most}, spread, n_images

    def _over_pairs(
        self, runs: Sequence[Iterable[Run]], where: tuple[str, str, str], value: float
    ) -> tuple[Row, Spread, int | None]:
        """Return interval and p-value from leaving out images, the variance, and how many images carry a difference."""
        dataset, metric, split = where
        members = self.values.study.paired if dataset == "ood_ccg" else [dataset]
        sides = [
            [[self.values.decisive(run, member, metric, split=split) for run in of_side] for member in members]
            for of_side in runs
        ]
        spread = of_datasets(sides)
        low, high = interval(value, spread, difference=len(sides) == 2)
        row = {"low": low, "high": high, "n_undefined": 0}
        if len(sides) == 1:
            return row, spread, None
        images = count_carriers(sides)
        p = p_value(value, spread, images)
        return {**row, "p": p, "p_at_most": None if p is None else False}, spread, images

    def _is_uneven(self, run: Run, dataset: str, metric: str, split: str) -> bool:
        members = self.values.study.ood if dataset == "ood6" else [dataset]
        return any(is_uneven(self.values.study.answers(run, member, split, "all")) for member in members)

    def _images(self, runs: Iterable[Run], dataset: str, metric: str, split: str) -> int:
        """Return on how many images a metric of answers rests: of AUROC, those with the rarer kind of answer."""
        found = 0
        for member in self.values.study.ood if dataset == "ood6" else [dataset]:
            of_runs = []
            for run in runs:
                answers = self.values.study.answers(run, member, split, "all")
                kinds = [
                    answers,
                    *([answers.filter("correct"), answers.filter(~answers["correct"])] * (metric == "auroc")),
                ]
                of_runs += [len(set(rows["cluster"])) for rows in kinds]
            found += min(of_runs)
        return found

    def adjusted(self, key: Row) -> Row:
        """Return Holm's adjustments of both p-values for all baselines of its contrast in this column."""
        if key["contrast"] is None:
            return dict.fromkeys(("p_holm", "p_holm_at_most", "p_holm_retrained"))
        baselines = self._contrasts[key["contrast"]]["baselines"]
        others = [self._numbers({**{name: key[name] for name in _KEY}, "baseline": b}) for b in baselines]
        own = self._numbers({name: key[name] for name in _KEY})
        p, at_most = _holm(own["p"], [(other["p"], other["p_at_most"]) for other in others])
        return {
            "p_holm": p,
            "p_holm_at_most": at_most,
            "p_holm_retrained": _holm(own["p_retrained"], [(other["p_retrained"], False) for other in others])[0],
        }

    def _stored(self, run: Run, dataset: str, metric: str, split: str) -> np.ndarray:
        members = self.values.study.ood if dataset == "ood6" else [dataset]
        return np.mean([self.values.study.replicates(run, name, split, metric) for name in members], axis=0)

    def _size(self, run: Run, dataset: str, metric: str, split: str) -> tuple[int, int]:
        """Return how many rows and distinct images a value rests on, added up over the members of a mean."""
        members = {"ood6": self.values.study.ood, "ood_ccg": self.values.study.paired}.get(dataset)
        if members is not None:
            sizes = [self._size(run, member, metric, split) for member in members]
            return sum(n for n, _ in sizes), sum(n for _, n in sizes)
        if "ccg" not in metric:
            images = self.values.study.answers(run, dataset, split, "all")["cluster"]
            return len(images), len(set(images))
        found = self.values.decisive(run, dataset, metric, split=split)
        return (0, 0) if found is None else (int(found.chosen.sum()), len(set(found.sources[found.chosen])))


def differences(table: str, intervals: Intervals) -> list[str]:
    """Return a line for every cell of the table's CSV that is wrong, missing, or there without a reason to be."""
    printed = {tuple(row[k] for k in _KEY): row for row in intervals.values.study.printed("tables", table).to_dicts()}
    wanted = {tuple(row[k] for k in _KEY): (row, place, own) for row, place, own in intervals.rows(table)}
    found = [f"{table} {_name(key)}: not in the table" for key in wanted.keys() - printed.keys()]
    found += [f"{table} {_name(key)}: not expected in the table" for key in printed.keys() - wanted.keys()]
    alpha = FALSE_ALARM / (3 * max(1, len(wanted)))  # two ends, and how many are undefined
    for key in wanted.keys() & printed.keys():
        (row, place, own), is_ = wanted[key], printed[key]
        stated = {**row, **{name: closest(is_[name], row[name]) for name in _COLUMNS}}
        to_be = {**{name: row[name] for name in _COLUMNS}, "printed": _printed(table, stated, place)}
        found += [
            f"{table} {_name(key)}: {n} {is_[n]!r}, expected {v!r}" for n, v in to_be.items() if differ(is_[n], v)
        ]
        if bool(is_["reason"]) != (row["mean"] is None):
            found.append(f"{table} {_name(key)}: reason {is_['reason']!r}")
        if own is not None and row["low"] is not None:
            ends = implausible(row["low"], row["high"], row["n_undefined"], row["n_drawn"], own, alpha)
            found += [f"{table} {_name(key)}: {line}" for line in ends]
    return sorted(found)


def forest(intervals: Intervals) -> list[str]:
    """Return a line for every value of the figure `forest` that is wrong: values, ends, p-values, filled dots."""
    study = intervals.values.study
    wrong = []
    printed = study.printed("figures", "forest").filter(pl.col("role") != "limit")
    for (backbone, metric), rows in printed.partition_by("backbone", "metric", as_dict=True).items():
        at = (backbone, None, study.in_distribution, "test", metric)
        names = rows.filter(role="null")["method"]
        methods = {row["method"]: row for row in rows.to_dicts() if row["role"] == "method"}

        def numbers(method: str, baseline: str | None = None, at: tuple = at) -> Row:
            return intervals._numbers(dict(zip(_KEY, (*at, method, baseline), strict=True)))

        tests = {(method, null): numbers(method, null) for method in methods for null in names}
        given = [(of["p"], of["p_at_most"]) for of in tests.values()]
        retrained = [(of["p_retrained"], False) for of in tests.values()]
        for row in rows.to_dicts():
            own = numbers(row["method"])
            to_be = {name: own[name] for name in ("low", "high", "low_retrained", "high_retrained", "n", "n_clusters")}
            to_be |= {"estimate": own["mean"], "short": own["short"]}
            if row["role"] == "method":
                of_nulls = [tests[row["method"], null] for null in names]
                p = [_holm(of["p"], given)[0] for of in of_nulls]
                p_retrained = [_holm(of["p_retrained"], retrained)[0] for of in of_nulls]
                both = [value for value in (*p, *p_retrained) if value is not None]
                is_above = len(both) >= len(names) and max(both) < 0.05 and all(of["mean"] > 0 for of in of_nulls)
                to_be |= {"p": max(p, default=None), "above": is_above and not any(of["short"] for of in of_nulls)}
                to_be["p_retrained"] = None if None in p_retrained else max(p_retrained, default=None)
            where = f"figure forest {backbone}/{metric}/{row['method']}"
            wrong += [f"{where}: {n} {row[n]!r}, expected {v!r}" for n, v in to_be.items() if differ(row[n], v)]
    return sorted(wrong)


def _of_seed(by_seed: dict[int, float], seed: int) -> float:
    """Return the value of a seed; an actor without seeds has one, beside every seed of another."""
    return by_seed[0] if set(by_seed) == {0} else by_seed[seed]


def _retrained(
    value: float,
    by_seed: Mapping[int, float],
    of_images: Spread | None,
    carriers: int | None,
    *,
    signed: bool,
    given: Limits,
) -> Row:
    """Return the columns about retrained actors; `carriers` is None for a value of one method."""
    if len(by_seed) < 2 or of_images is None:
        return {}
    spread, (low, high) = over_seeds(of_images, list(by_seed.values())), given
    if low is not None and high is not None and spread.variance > 1e-25:  # else, that of these seeds
        wider_low, wider_high = interval(value, spread, difference=signed)
        if wider_low is not None and wider_high is not None:  # else there are too few images for a wider one
            low, high = min(low, wider_low), max(high, wider_high)
    p = None if carriers is None else p_value(value, spread, carriers)
    return {"low_retrained": low, "high_retrained": high, "p_retrained": p}


def _holm(own: float | None, others: Sequence[tuple[float | None, bool]]) -> tuple[float | None, bool | None]:
    """Return the adjusted p-value, and whether it is a limit: the largest of what it and smaller ones are raised to."""
    if own is None:
        return None, None
    ranked = sorted((p, at_most) for p, at_most in others if p is not None)
    # The smallest is multiplied by m, the next by m - 1, ...
    raised = [(p * (len(ranked) - rank), at_most) for rank, (p, at_most) in enumerate(ranked) if p <= own]
    largest = max(p for p, _ in raised)
    if largest >= 1.0:
        return 1.0, False
    return largest, next(at_most for p, at_most in raised if p == largest)


def _p_value(defined: np.ndarray) -> float:
    """Return min(1, 2 min(1 + #<=0, 1 + #>=0) / (B + 1)); what is only rounded away from 0 counts on both sides."""
    rounded = np.round(defined, 12)
    fewest = min(np.sum(rounded <= 0), np.sum(rounded >= 0))
    return min(1.0, float(2 * (1 + fewest) / (len(defined) + 1)))


def _printed(table: str, row: Row, place: str) -> str:
    signed = row["baseline"] is not None
    dagger = mark(row["short"].split(" and ") if row["short"] else ())
    if row["mean"] is None:
        return DASH
    ends = DASH if row["low"] is None else f"[{text(row['low'], signed=signed)}, {text(row['high'], signed=signed)}]"
    point = text(row["mean"], signed=signed)
    if table == "significance":
        if row["p_holm"] is None:
            return point + dagger
        shown = [_p_text(row["p_holm"], row["p_holm_at_most"])]
        shown += [] if row["p_holm_retrained"] is None else [_p_text(row["p_holm_retrained"], False)]
        return f"{point}{dagger} ({'; '.join(shown)})"
    if table == "intervals":
        return ends if dagger and place != "ood" else f"{point}{dagger} {ends}"
    spread = "" if row["std"] is None else f"±{text(row['std'])}"
    low, high = (row[f"{end}_retrained"] for end in ("low", "high"))
    retrained = "" if low is None else f" [{text(low, signed=True)}, {text(high, signed=True)}]"
    return f"{point}{spread}{dagger} {ends}{retrained}"


def _p_text(p: float, at_most: bool) -> str:
    return "<.001" if p < 0.001 else ("≤" if at_most else "") + text(p).removesuffix(".000")


def _name(key: tuple) -> str:
    return "/".join(str(part) for part in key if part is not None)

"""The tables of intervals and differences: points from rows, ends from the stored resamples and from our own."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import mean, stdev
from typing import Any

import numpy as np

from tests.workflow.recount.cells import DASH, closest, differ, text
from tests.workflow.recount.resampling import FALSE_ALARM, PERCENTILES, Resamples, implausible
from tests.workflow.recount.study import Run
from tests.workflow.recount.values import CCG, Values

METRICS = ("auroc", "brier", "natural_ccg_auc", "strict_ccg_auc")
TABLES = ("paired", "significance", "intervals")
_KEY = ("backbone", "contrast", "dataset", "split", "metric", "method", "baseline")
_COLUMNS = ("mean", "std", "n_seeds", "low", "high", "p", "p_holm", "n", "n_clusters", "n_undefined", "underpowered")
Row = dict[str, Any]


@dataclass(kw_only=True)
class Intervals:
    """The rows of the interval tables as they have to be."""

    values: Values
    resamples: Resamples = field(init=False)
    _known: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.resamples = Resamples(values=self.values)
        path = self.values.study.results / "contrasts" / "MANIFEST.json"
        self._contrasts = {c["name"]: c for c in json.loads(path.read_text())["spec"]["contrasts"]}

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
                    for metric in (f"{m}{way}" for m in METRICS for way in ("", "_two_way")[: 1 + (m in CCG)]):
                        dataset = place if place != "ood" else "ood_ccg" if "ccg" in metric else "ood6"
                        if contrast is None or dataset in self._contrasts[contrast]["datasets"]:
                            key = (backbone, contrast, dataset, split, metric, method, baseline)
                            yield from self._row(table, dict(zip(_KEY, key, strict=True)), place)

    def _row(self, table: str, key: Row, place: str) -> Iterator[tuple[Row, str, np.ndarray | None]]:
        row, two_way = {**key, **self._numbers(key), "p_holm": self.adjusted(key)}, key["metric"].endswith("_two_way")
        if two_way and (table == "significance" or (table == "paired" and row["mean"] is None)):
            return
        own = None
        if row["mean"] is not None:
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
        weak = [self.values.weak(r, where[0], where[1].removesuffix("_two_way"), where[2]) for of in runs for r in of]
        found = {"n": min(n for n, _ in sizes), "n_clusters": min(n for _, n in sizes), "underpowered": any(weak)}
        points = [self.values.by_seed(key["backbone"], side, *where[:2], split=where[2]) for side in sides]
        if any(None in of_side.values() for of_side in points):
            return {**dict.fromkeys(_COLUMNS), **found, "n_seeds": 0}
        stored = [np.mean([self._stored(run, *where) for run in of_side], axis=0) for of_side in runs]
        by_seed, replicates = points[0], stored[0]
        if len(sides) == 2:
            replicates = stored[0] - stored[1]
            seeds = points[0].keys() & points[1].keys() or points[0].keys() ^ points[1].keys()
            by_seed = {s: _of_seed(points[0], s) - _of_seed(points[1], s) for s in seeds - {0} or seeds}
        defined = replicates[~np.isnan(replicates)]
        low, high = np.percentile(defined, PERCENTILES) if len(defined) else (None, None)
        return {
            **found,
            "mean": mean(points[0].values()) - (mean(points[1].values()) if len(sides) == 2 else 0.0),
            "std": stdev(by_seed.values()) if len(by_seed) > 1 else None,
            "n_seeds": len(by_seed),
            "low": None if low is None else float(low),
            "high": None if high is None else float(high),
            "n_undefined": len(replicates) - len(defined),
            "n_drawn": len(replicates),
            "p": _p_value(defined) if len(sides) == 2 else None,
        }

    def adjusted(self, key: Row) -> float | None:
        """Return Holm's adjustment of a p-value for all baselines of its contrast in this column."""
        if key["contrast"] is None:
            return None
        baselines = self._contrasts[key["contrast"]]["baselines"]
        others = {b: self._numbers({**{name: key[name] for name in _KEY}, "baseline": b})["p"] for b in baselines}
        p_values = sorted(p for p in others.values() if p is not None)
        own = others[key["baseline"]]
        if own is None:
            return None
        # The largest of what it and every smaller one is multiplied to: the smallest by m, the next by m - 1, ...
        return min(1.0, max(p * (len(p_values) - rank) for rank, p in enumerate(p_values) if p <= own))

    def _stored(self, run: Run, dataset: str, metric: str, split: str) -> np.ndarray:
        members = {"ood6": self.values.study.ood, "ood_ccg": self.values.study.paired}.get(dataset, [dataset])
        return np.mean([self.values.study.replicates(run, name, split, metric) for name in members], axis=0)

    def _size(self, run: Run, dataset: str, metric: str, split: str) -> tuple[int, int]:
        """Return how many rows and distinct images a value rests on, added up over the members of a mean."""
        members = {"ood6": self.values.study.ood, "ood_ccg": self.values.study.paired}.get(dataset)
        if members is not None:
            sizes = [self._size(run, member, metric, split) for member in members]
            return sum(n for n, _ in sizes), sum(n for _, n in sizes)
        if "ccg" not in metric:
            images = self.values.study.answers(run, dataset, split, "all")["image_id"]
            return len(images), len(set(images))
        found = self.values.decisive(run, dataset, metric.removesuffix("_two_way"), split=split)
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


def _of_seed(by_seed: dict[int, float], seed: int) -> float:
    """Return the value of a seed; an actor without seeds has one, beside every seed of another."""
    return by_seed[0] if set(by_seed) == {0} else by_seed[seed]


def _p_value(defined: np.ndarray) -> float | None:
    """Return min(1, 2 min(1 + #<=0, 1 + #>=0) / (B + 1)); what is only rounded away from 0 counts on both sides."""
    if len(defined) == 0:
        return None
    rounded = np.round(defined, 12)
    fewest = min(np.sum(rounded <= 0), np.sum(rounded >= 0))
    return min(1.0, float(2 * (1 + fewest) / (len(defined) + 1)))


def _printed(table: str, row: Row, place: str) -> str:
    signed, dagger = row["baseline"] is not None, "†" if row["underpowered"] else ""
    if row["mean"] is None:
        return DASH
    interval = (
        DASH if row["low"] is None else f"[{text(row['low'], signed=signed)}, {text(row['high'], signed=signed)}]"
    )
    point = text(row["mean"], signed=signed)
    if table == "significance":
        p = row["p_holm"]
        return point + dagger + ("" if p is None else f" ({'<.001' if p < 0.001 else text(p).removesuffix('.000')})")
    if row["metric"].endswith("_two_way"):
        return interval
    if table == "intervals":
        return interval if dagger and place != "ood" else f"{point}{dagger} {interval}"
    spread = "" if row["std"] is None else f"±{text(row['std'])}"
    return f"{point}{spread}{dagger} {interval}"


def _name(key: tuple) -> str:
    return "/".join(str(part) for part in key if part is not None)

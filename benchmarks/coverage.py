"""How often intervals cover, tests reject, and certified thresholds are wrong: what is printed, and what was rejected.

    OMP_NUM_THREADS=1 python benchmarks/coverage.py --quick      two minutes
    OMP_NUM_THREADS=1 python benchmarks/coverage.py              a quarter of an hour
    OMP_NUM_THREADS=1 python benchmarks/coverage.py --data-sets 2000 --only certified
    OMP_NUM_THREADS=1 python benchmarks/coverage.py --data-sets 200 --only uneven      five minutes
    OMP_NUM_THREADS=1 python benchmarks/coverage.py --data-sets 200 --only patients    two minutes
    OMP_NUM_THREADS=1 python benchmarks/coverage.py --data-sets 200 --only subgroups   a quarter of an hour
    OMP_NUM_THREADS=1 python benchmarks/coverage.py --data-sets 200 --only claims      a quarter of an hour

Data sets are drawn from known sources (`_simulated.py`). "printed" is what `dualread evaluate` prints; the other
lines are alternatives that were rejected, written here in a few lines each. Every share has its Monte Carlo standard
error.

- intervals: how often the 95% interval holds the true value, its mean width, how often it excludes its own estimate,
  and how often there is none. The true value is the estimate from 20,000 images. A coverage below .92 or above .98 has
  a star.
- tests: how often p is at most .05. Methods a and b are equal in everything; a and `narrow` are both calibrated, but
  `narrow` says nearly the same every time.
- tests of retrained methods: the same of two methods that are equal but for the luck of their three seeds each.
- uneven: the same where some images hold most answers, for correlations of 0 to .6 within images. Sizes stay, so
  that the true value is that of as many images with one answer each.
- patients: the same where patients have several images, with intervals over patients and over images.
- subgroups: how often all simultaneous intervals of the groups of a column hold, and how often the interval of the
  worst group's value does. "by themselves" are the intervals of single groups, "chosen" is the one of the group that
  looks worst, for its own value, and "normal" multiplies all standard errors by one number, as max-t of independent
  groups does. In the last column, how often Holm's method finds a difference to the rest; there is one in "one worse".
- answer sets: how often that of a random answer about a new image has the right choice, and that of any answer.
- claims: intervals over claims of reports, of which patients have several; those of Forced CCG-AUC, and tests of two
  equal methods that judge the same reports, or those of two actors; and how often a certified filter is wrong, in 200
  random designs.
- certified thresholds: how often the risk is above the target, and what share of new answers is kept.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import get_args

import numpy as np
import polars as pl
from _answer_sets import answer_set_lines
from _claims import claim_filter_lines, claim_interval_lines, forced_claim_lines
from _simulated import CALIBRATIONS, Design, answers, source
from _subgroups import subgroup_lines
from scipy.special import ndtr

import dualread
from dualread.apps.evaluate.evaluation_data import evaluation_data
from dualread.apps.evaluate.metrics import measure
from dualread.apps.text import aligned
from dualread.data.tables.checks import checked
from dualread.data.tables.contract import ANSWERS, TableOptions
from dualread.data.tables.memory import read_frame
from dualread.errors import UndefinedMetricError
from dualread.evaluation.answer_metrics import ALL_METRICS
from dualread.evaluation.contrasts import Results, compare
from dualread.evaluation.metrics import certified_threshold, threshold
from dualread.evaluation.metrics.calibration_error import bins
from dualread.evaluation.metrics.risk_control import starts
from dualread.evaluation.pair_metrics import PAIR_METRICS
from dualread.schema.metrics import ContrastSpec, FurtherCompared

DESIGNS = (
    Design(name="100 images", images=100),
    Design(name="accuracy .95", images=100, accuracy=0.95),
    Design(name="8 donor images", images=100, donors=8),
    Design(name="30 images", images=30),
    Design(name="300 images", images=300),
    Design(name="1 answer each", images=100, per_image=(1, 1)),
    Design(name="12 answers, ICC .8", images=100, per_image=(12, 12), icc=0.8),
    Design(name="accuracy .05", images=100, accuracy=0.05),
)
UNEVEN: Mapping[str, Sequence[int]] = {
    "199 and 1": [199, 1],
    "190 and 10 of 1": [190, *[1] * 10],
    "150 and 50 of 1": [150, *[1] * 50],
    "100 and 20 of 5": [100, *[5] * 20],
    "3 of 50, 50 of 1": [*[50] * 3, *[1] * 50],
    "70 and 130 of 1": [70, *[1] * 130],
    "2 of 50, 20 of 5": [*[50] * 2, *[5] * 20],
    "Zipf, 30": [200 // k for k in range(1, 31)],
    "Zipf, 200": [max(200 // k, 1) for k in range(1, 201)],
    "2 of 100": [100] * 2,
    "67, 67 and 66": [67, 67, 66],
    "5 of 40": [40] * 5,
    "10 of 20": [20] * 10,
    "200 of 1": [1] * 200,
}
# Answers of each patient; every two are about one image.
PATIENTS: Mapping[str, Sequence[int]] = {
    "60 of 3 images": [6] * 60,
    "80 of 1 to 7 images": [2 * k for k in range(1, 8)] * 11 + [2] * 3,
}
CORRELATIONS = (0.0, 0.1, 0.3, 0.6)
UNEVEN_METRICS = ("accuracy", "brier", "auroc", "aurc", "hce90", "squared_calibration_error")
UNEVEN_METRICS += get_args(FurtherCompared)
QUICK = 3  # the first designs alone
REPLICATES = 400
SEED_DEVIATIONS = (0.0, 0.15, 0.4)  # of the logarithm of a method's noise, between trained seeds
TARGET, DELTA = 0.2, 0.1
WITHHELD = ("ece15",)  # metrics whose interval is withheld; others without one are not listed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-sets", type=int, help="number of data sets of each design (400; 100 with --quick)")
    parser.add_argument("--quick", action="store_true", help="three designs instead of eight, and fewer data sets")
    parser.add_argument(
        "--only",
        choices=["intervals", "uneven", "patients", "subgroups", "answer_sets", "claims", "retrained", "certified"],
        help="one part; tests go with intervals",
    )
    options = parser.parse_args()
    n = options.data_sets or (100 if options.quick else 400)
    designs = DESIGNS[:QUICK] if options.quick else DESIGNS
    if options.only in (None, "uneven"):
        for name, sizes in UNEVEN.items():
            found = Found()
            for correlation in CORRELATIONS:
                uneven(name, sizes, correlation, n, found)
            print(f"\nuneven: {name}", *found.interval_lines(), "", *found.test_lines(), sep="\n", flush=True)
    if options.only in (None, "patients"):
        for name, sizes in PATIENTS.items():
            found = Found()
            for correlation in CORRELATIONS:
                of_patients(name, sizes, correlation, n, found)
            print(f"\npatients: {name}", *found.interval_lines(), sep="\n", flush=True)
    if options.only in (None, "subgroups"):
        print("\nsubgroups", *subgroup_lines(n), sep="\n", flush=True)
    if options.only in (None, "answer_sets"):
        print("\nanswer sets, miss .1", *answer_set_lines(n), sep="\n", flush=True)
    if options.only in (None, "claims"):
        print("\nintervals over claims", *claim_interval_lines(n), sep="\n", flush=True)
        print("\nforced claims, and equal methods", *forced_claim_lines(n), sep="\n", flush=True)
        print("\ncertified filters, delta .1", *claim_filter_lines(n // 2), sep="\n", flush=True)
    if options.only in (None, "intervals"):
        found = Found()
        for design in designs:
            started = time.perf_counter()
            measured(design, n, found)
            print(f"{design.name}: {n} data sets, {time.perf_counter() - started:.0f} s", flush=True)
        for title, lines in (("intervals", found.interval_lines()), ("tests of no difference", found.test_lines())):
            print(f"\n{title}", *lines, sep="\n", flush=True)
    if options.only in (None, "retrained"):
        found = Found()
        for deviation in SEED_DEVIATIONS:
            retrained(deviation, n, found)
        print("\ntests of retrained methods", *found.test_lines(), sep="\n", flush=True)
    if options.only in (None, "certified"):
        print("\ncertified thresholds, target .2, delta .1", *certified_lines(5 * n), sep="\n")


class Found:
    """What was found in all data sets, by (design, metric, how)."""

    def __init__(self) -> None:
        self.intervals: dict[tuple[str, str, str], list[tuple[float, float, float, float]]] = defaultdict(list)
        self.p_values: dict[tuple[str, str, str], list[float | None]] = defaultdict(list)

    def add(self, place: str, how: str, metrics: pl.DataFrame, truth: Mapping[tuple[str, str], float]) -> None:
        """Add the intervals of method a that are compared where clusters are uneven."""
        chosen = metrics.filter(pl.col("metric").is_in(UNEVEN_METRICS), subset="all", method="a")
        for row in chosen.filter(pl.col("estimate").is_not_null()).to_dicts():
            low, high = (np.nan, np.nan) if row["low"] is None else (row["low"], row["high"])
            end = (low, high, row["estimate"], truth["a", row["metric"]])
            self.intervals[place, row["metric"], how].append(end)

    def interval_lines(self) -> Iterator[str]:
        table = [("design", "metric", "interval", "coverage", "se", "", "width", "excludes itself", "none")]
        for key in _together(self.intervals):
            rows = self.intervals[key]
            given = [row for row in rows if not np.isnan(row[0])]
            none = _share([np.isnan(row[0]) for row in rows])
            if not given:
                table += [(*key, "-", "", "", "-", "-", none)] if key[1] in WITHHELD else []
                continue
            low, high, estimate, truth = (np.array(column) for column in zip(*given, strict=True))
            covers = (low <= truth) & (truth <= high)
            mark = "" if 0.92 <= covers.mean() <= 0.98 else "*"
            excluded = _share((estimate < low) | (estimate > high))
            table.append((*key, _share(covers), _error(covers), mark, f"{np.mean(high - low):.3f}", excluded, none))
        yield from aligned(table, numbers=(3, 4, 6, 7, 8))

    def test_lines(self) -> Iterator[str]:
        table = [("design", "difference", "p-value", "p <= .05", "se", "none")]
        for key in _together(self.p_values):
            values = self.p_values[key]
            given = np.array([value for value in values if value is not None])
            none = _share([value is None for value in values])
            below = given <= 0.05
            table.append((*key, _share(below), _error(below), none) if len(given) else (*key, "-", "", none))
        yield from aligned(table, numbers=(3, 4, 5))


def measured(design: Design, n: int, found: Found) -> None:
    """Add what is printed for `n` data sets of a design, and the alternatives."""
    rng = np.random.default_rng([1, len(design.name), design.images])
    truth = _estimates(dualread.evaluate(*answers(source(design), rng), replicates=0).metrics)
    for _ in range(n):
        rows, pairs = answers(design, rng)
        got = dualread.evaluate(rows, pairs, compare=["a", "b", "narrow"], replicates=REPLICATES)
        for row in got.metrics.filter(
            pl.col("subset") == "all", pl.col("metric").is_in([*ALL_METRICS, *PAIR_METRICS])
        ).to_dicts():
            method, metric = row["method"], row["metric"]
            if row["estimate"] is None or not (method == "a" or (method == "blind" and metric == "natural_ccg_auc")):
                continue
            low, high = (np.nan, np.nan) if row["low"] is None else (row["low"], row["high"])
            name = metric if method == "a" else f"{metric} of .5"
            found.intervals[design.name, name, "printed"].append((low, high, row["estimate"], truth[method, metric]))
        assert got.differences is not None
        for row in got.differences.to_dicts():
            if row["n"] > 0 and (row["baseline"] == "b" or "calibration" in row["metric"] or row["metric"] == "ece15"):
                found.p_values[design.name, f"{row['metric']}, a - {row['baseline']}", "printed"].append(row["p"])
        one, narrow = (_of_method(rows, name) for name in ("a", "narrow"))
        for metric, replicates, estimate in alternatives(one, _of_method(pairs, "a"), rng):
            kind, how = metric
            low, high = np.nanpercentile(replicates, (2.5, 97.5)) if np.isfinite(replicates).any() else (np.nan,) * 2
            found.intervals[design.name, kind, how].append((low, high, estimate, truth["a", kind]))
        weights = _weights(one, rng)
        difference = _ece(one, weights) - _ece(narrow, weights)
        share = float(min(np.mean(difference <= 0), np.mean(difference >= 0)))
        found.p_values[design.name, "ece15, a - narrow", "percentile"].append(min(1.0, 2 * share))


def alternatives(
    rows: Mapping[str, np.ndarray], pairs: Mapping[str, np.ndarray], rng: np.random.Generator
) -> Iterator[tuple[tuple[str, str], np.ndarray, float]]:
    """Yield (metric, how), replicates [B] and the estimate, of intervals that are percentiles of resamples."""
    weights = _weights(rows, rng)
    image, wrong = rows["image"], ~rows["correct"]
    n = np.bincount(image)
    once = np.ones((1, weights.shape[1]))
    for metric, values in (("accuracy", ~wrong), ("hce90", wrong & (rows["confidence"] >= 0.9))):
        sums = np.bincount(image, values, len(n))
        yield (metric, "percentile"), weights @ sums / (weights @ n), float(values.mean())
    yield ("auroc", "percentile"), _auroc(rows, weights), float(_auroc(rows, once)[0])
    yield ("ece15", "percentile"), _ece(rows, weights), float(_ece(rows, once)[0])
    decisive = rows["correct"] & ~pairs["donor_correct"]
    if decisive.any():
        own, other = rows["confidence"][decisive], pairs["donor_confidence"][decisive]
        wins, images = (own > other) + 0.5 * (own == other), weights.shape[1]
        source_image, donor_image = image[decisive], pairs["donor"][decisive]
        by_source = weights[:, source_image]
        by_both = by_source * rng.multinomial(images, np.full(images, 1 / images), len(weights))[:, donor_image]
        for how, weight in (("one-way percentile", by_source), ("product weights", by_both)):
            with np.errstate(invalid="ignore"):
                yield ("natural_ccg_auc", how), weight @ wins / weight.sum(axis=1), float(wins.mean())


def uneven(name: str, sizes: Sequence[int], correlation: float, n: int, found: Found) -> None:
    """Add what is printed for images of these sizes, and for the difference of two equal methods."""
    rng = np.random.default_rng([4, len(sizes), max(sizes), int(10 * correlation)])
    truth = _truth()
    place = f"{name}, ICC {correlation:g}"
    for _ in range(n):
        got = dualread.evaluate(_of_sizes(sizes, correlation, rng), compare=["a", "b"], replicates=REPLICATES)
        found.add(place, "printed", got.metrics, truth)
        assert got.differences is not None
        for row in got.differences.filter(pl.col("metric").is_in(UNEVEN_METRICS)).to_dicts():
            if row["metric"] != "accuracy" and row["estimate"] is not None:
                found.p_values[place, f"{row['metric']}, a - b", "printed"].append(row["p"])


def of_patients(name: str, sizes: Sequence[int], correlation: float, n: int, found: Found) -> None:
    """Add what is printed for patients with so many answers, of which every two are about one image."""
    rng = np.random.default_rng([5, len(sizes), int(10 * correlation)])
    truth = _truth()
    image = np.concatenate([np.arange(size) // 2 for size in (*sizes, *sizes)]).astype(str)  # of both methods
    for _ in range(n):
        table = _of_sizes(sizes, correlation, rng)
        patients = table["image_id"]
        tables = {"over patients": {"cluster_id": patients}, "over images": {}}
        for how, columns in tables.items():
            of_image = {"image_id": np.char.add(np.char.add(patients, "-"), image)}
            got = dualread.evaluate({**table, **of_image, **columns}, replicates=REPLICATES)
            found.add(f"{name}, ICC {correlation:g}", how, got.metrics, truth)


@cache
def _truth() -> dict[tuple[str, str], float]:
    """Return the metrics of 50,000 images with one answer each."""
    rows = _of_sizes([1] * 50_000, 0.0, np.random.default_rng(4))
    return _estimates(dualread.evaluate(rows, replicates=0).metrics)


def _of_sizes(sizes: Sequence[int], correlation: float, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return answers of two equal methods, about 65% right, to images with so many answers."""
    image = np.repeat(np.arange(len(sizes)), sizes)

    def mixed() -> np.ndarray:
        of_image, single = rng.standard_normal(len(sizes))[image], rng.standard_normal(len(image))
        return np.sqrt(correlation) * of_image + np.sqrt(1.0 - correlation) * single

    latent = mixed()
    names = [np.char.add(kind, of.astype(str)) for kind, of in (("q", np.arange(len(image))), ("i", image))]
    tables = [
        {"confidence": ndtr(0.8 * (latent + 0.8 * mixed()) + 0.5), "method": np.full(len(image), m)} for m in "ab"
    ]
    same = {"sample_id": names[0], "image_id": names[1], "correct": latent > -0.4}
    return {name: np.concatenate([{**same, **table}[name] for table in tables]) for name in (*same, *tables[0])}


def retrained(deviation: float, n: int, found: Found) -> None:
    """Add p-values of two methods whose seeds are draws of one distribution, each with three trained seeds."""
    rng = np.random.default_rng([2, int(1000 * deviation)])
    design = Design(name="", images=200, per_image=(3, 3))
    contrast = ContrastSpec(name="", method="a", baselines=("b",), datasets=("",), split="test", metrics=("auroc",))
    deviations = []
    for _ in range(n):
        noise = {f"{m}{k}": float(np.exp(deviation * rng.standard_normal())) for m in "ab" for k in range(3)}
        table = read_frame(pl.DataFrame(answers(design, rng, noise)[0]), "simulated")
        [cells] = evaluation_data(checked(table, TableOptions().reading(ANSWERS)))
        of_all = measure(cells, replicates=REPLICATES, seed=0)
        place = {"backbone": pl.lit(""), "dataset": pl.lit(""), "split": pl.lit("test")}
        runs = of_all.metrics.filter(pl.col("method") != "blind").with_columns(
            pl.col("method").str.head(1), seed=pl.col("method").str.tail(1).cast(pl.Int64), **place
        )
        results = Results(
            runs, lambda run, name, kept=of_all.kept: kept[f"{run[2]}{run[1]}"].replicates["auroc"], {}, ["auroc"]
        )
        rows = compare(results, [contrast])
        deviations += [row["seed_std"] for row in rows if "contrast" not in row]
        [difference] = [row for row in rows if "contrast" in row]
        for how, name in (("for these seeds", "p"), ("retrained", "p_retrained")):
            found.p_values[f"3 seeds, noise {deviation:g}", "auroc, a - b", how].append(difference[name])
    print(f"noise {deviation:g} between seeds: deviation of AUROC {np.mean(deviations):.3f}", flush=True)


def certified_lines(n: int) -> Iterator[str]:
    table = [("source", "images", "rule", "above the target", "se", "kept", "se")]
    for k, of in enumerate(CALIBRATIONS):
        rng = np.random.default_rng([3, k])
        many = of.draw(rng, 50_000)
        results: dict[str, list[tuple[bool, float]]] = defaultdict(list)
        for _ in range(n):
            drawn = of.draw(rng)
            for rule, choose in RULES.items():
                try:
                    kept = many["confidence"] >= choose(drawn, of.max_per_image)
                except UndefinedMetricError:
                    kept = np.zeros(len(many["confidence"]), dtype=np.bool_)
                results[rule].append((bool(kept.any() and many["wrong"][kept].mean() > TARGET), kept.mean()))
        for rule, rows in results.items():
            failed, kept = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
            cells = (_share(failed), _error(failed), _share(kept), f"{kept.std() / np.sqrt(n):.3f}")
            table.append((of.name, str(of.images), rule, *cells))
    yield from aligned(table, numbers=(1, 3, 4, 5, 6))


def last_wealth(drawn: Mapping[str, np.ndarray], most: int | None) -> float:
    """Return the threshold of bets whose last wealth counts, in five sequences with a level of their own."""
    order = np.argsort(-drawn["confidence"], kind="stable")
    confidence, wrong, image = drawn["confidence"][order], ~drawn["correct"][order], drawn["image"][order]
    levels = np.unique(-confidence)
    kept = np.zeros((len(levels), image.max() + 1))
    at = np.searchsorted(levels, -confidence)
    np.add.at(kept, (at, image), wrong - TARGET)
    stakes = 2.0 ** -np.arange(5)[:, np.newaxis, np.newaxis] / ((1 - TARGET) * (most or np.bincount(image).max()))
    wealth = np.exp(np.log(np.maximum(1 - stakes * np.cumsum(kept, axis=0), 1e-16)).sum(axis=2)).mean(axis=0)
    passed = []
    for start in starts(TARGET):
        begin = np.searchsorted(levels, -start, "right") - 1
        run = np.flatnonzero(wealth[max(begin, 0) :] < 5 / DELTA)
        end = begin + (run[0] if len(run) else len(levels) - begin)
        passed += [-levels[end - 1]] if begin >= 0 and end > begin else []
    if not passed:
        raise UndefinedMetricError("nothing is certified")
    return min(passed)


RULES = {
    "printed": lambda drawn, most: certified_threshold(
        *(drawn[name] for name in ("confidence", "correct", "image")),
        target_risk=TARGET,
        delta=DELTA,
        max_per_image=most,
    ),
    "last wealth, separate levels": last_wealth,
    "empirical": lambda drawn, most: threshold(drawn["confidence"], drawn["correct"], target_risk=TARGET),
}


def _of_method(columns: Mapping[str, np.ndarray], method: str) -> dict[str, np.ndarray]:
    """Return the rows of a method, with the numbers of images and donors."""
    chosen = columns["method"] == method
    found = {name: values[chosen] for name, values in columns.items()}
    for name, number in (("image_id", "image"), ("donor_image_id", "donor")):
        if name in found:
            found[number] = np.array([int(image[1:]) for image in found[name]])
    return found


def _weights(rows: Mapping[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Return how often each resample draws each image, [B, images]."""
    n = int(rows["image"].max()) + 1
    return rng.multinomial(n, np.full(n, 1 / n), REPLICATES)


def _auroc(rows: Mapping[str, np.ndarray], weights: np.ndarray) -> np.ndarray:
    right, confidence, image = rows["correct"], rows["confidence"], rows["image"]
    above = np.sign(confidence[right][:, np.newaxis] - confidence[~right]) / 2 + 0.5
    of_right, of_wrong = weights[:, image[right]], weights[:, image[~right]]
    with np.errstate(invalid="ignore"):
        return np.einsum("bi,bi->b", of_right @ above, of_wrong) / (of_right.sum(axis=1) * of_wrong.sum(axis=1))


def _ece(rows: Mapping[str, np.ndarray], weights: np.ndarray) -> np.ndarray:
    n_images = weights.shape[1]
    residual = np.zeros((n_images, 15))
    np.add.at(residual, (rows["image"], bins(rows["confidence"])), rows["correct"] - rows["confidence"])
    return np.abs(weights @ residual).sum(axis=1) / (weights @ np.bincount(rows["image"], minlength=n_images))


def _together(keys: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Return the keys by design and by what is measured, each in the order in which it came first."""
    place: dict[str, int] = {}
    for key in keys:
        for name in key[:2]:
            place.setdefault(name, len(place))
    return sorted(keys, key=lambda key: (place[key[0]], place[key[1]]))


def _estimates(metrics: pl.DataFrame) -> dict[tuple[str, str], float]:
    return {(row["method"], row["metric"]): row["estimate"] for row in metrics.filter(subset="all").to_dicts()}


def _share(values: Sequence | np.ndarray) -> str:
    return f"{np.mean(values):.3f}"


def _error(values: np.ndarray) -> str:
    """Return the Monte Carlo standard error of a share; with no event in n data sets that of one event."""
    share, n = float(np.mean(values)), len(values)
    share = min(max(share, 1 / n), 1 - 1 / n) if n > 1 else share
    return f"{np.sqrt(share * (1 - share) / n):.3f}"


if __name__ == "__main__":
    main()

"""Contrasts from made-up answers to p-values, against the literal loop: draw images, repeat rows, compute anew."""

from statistics import mean, stdev

import numpy as np
import polars as pl
import pytest
import scipy

from dualread.artifacts.tables import from_rows
from dualread.errors import ConfigError
from dualread.evaluation.aggregates import aggregate
from dualread.evaluation.answer_metrics import ANSWER_METRICS
from dualread.evaluation.columns import CellColumns, Columns
from dualread.evaluation.contrasts import OverSeeds, Results, compare
from dualread.evaluation.estimates import estimate
from dualread.evaluation.join import Joined
from dualread.evaluation.pair_metrics import PairValues
from dualread.evaluation.samples import Resampled
from dualread.evaluation.statistics.bootstrap import ClusterDraws
from dualread.schema.columns import METRICS
from dualread.schema.metrics import ContrastSpec
from dualread.seeding import generator
from tests.evaluation.spread import spread_as_t

B = 40
SIZES = {"slake": (60, 12), "a": (30, 9), "b": (45, 15)}  # questions, images
RUNS = {"psr": (17, 29), "twin": (17, 29), "other": (17, 29), "base": (0,)}
METRIC_NAMES = ("auroc", "brier")


def answers_of(dataset, method, seed):
    n, n_images = SIZES[dataset]
    rng = generator(dataset, "psr" if method == "twin" else method, seed)
    confidence = np.round(rng.random(n), 1)
    return pl.DataFrame(
        {
            "sample_id": [f"{i:03d}" for i in range(n)],
            "question_key": "q",
            "answer_type": "open",
            "cluster_id": [f"{dataset}-{i % n_images:02d}" for i in range(n)],
            "correct": rng.random(n) < 0.3 + 0.4 * confidence,
            "confidence": confidence,
            "imputed": False,
        }
    )


class Study:
    """Metrics and replicates of every run, as compute_metrics and collect_metrics make them."""

    def __init__(self, change=lambda frame, dataset, method, seed: frame):
        rows, self.replicates, self.frames = [], {}, {}
        for method, seeds in RUNS.items():
            for seed in seeds:
                for dataset in SIZES:
                    frame = change(answers_of(dataset, method, seed), dataset, method, seed)
                    self.frames[dataset, method, seed] = frame
                    evaluated = Joined(answers=frame, pairs="no pairs", fixed="none", shuffled="none")
                    images = tuple(sorted(set(answers_of(dataset, method, seed)["cluster_id"])))
                    draws = ClusterDraws(names=("s", dataset, "test"), cluster_ids=images, replicates=B)
                    found, kept = estimate(CellColumns.of(evaluated), draws)
                    run = {"study": "s", "backbone": "tiny", "actor": "x", "seed": seed, "method": method}
                    rows += [{**run, "dataset": dataset, "split": "test", **row} for row in found]
                    for metric, values in kept.replicates.items():
                        self.replicates["tiny", seed, method, f"{dataset}/test/{metric}"] = values
        metrics = from_rows(rows, METRICS)
        self.metrics = pl.concat([metrics, aggregate(metrics, ood=["a", "b"], ood_ccg=[])])

    def compare(self, *contrasts):
        def read(run, name):
            return self.replicates[(*run, name)]

        return compare(Results(self.metrics, read, {"ood6": ["a", "b"], "ood_ccg": []}, METRIC_NAMES), contrasts)

    def literal(self, dataset, method, metric):
        """The mean over seeds in every resample, each drawn and computed by itself, with the spread of t."""
        values = np.empty((B, len(RUNS[method])))
        stream, n_images = generator("s", dataset, "test", "bootstrap"), SIZES[dataset][1]
        for replicate in range(B):
            drawn = stream.integers(0, n_images, size=n_images)
            for k, seed in enumerate(RUNS[method]):
                frame = self.frames[dataset, method, seed]
                rows = [i for image in drawn for i in range(len(frame)) if i % n_images == image]
                values[replicate, k] = ANSWER_METRICS[metric].value(Columns.of(frame[rows]))
        for k, seed in enumerate(RUNS[method]):
            frame = self.frames[dataset, method, seed]
            kinds = [frame, *([frame.filter("correct"), frame.filter(~frame["correct"])] if metric == "auroc" else [])]
            images = [of["cluster_id"].n_unique() for of in kinds]
            if metric == "brier":
                images += [2 * frame.filter(correct=kind)["cluster_id"].n_unique() + 1 for kind in (True, False)]
            value = ANSWER_METRICS[metric].value(Columns.of(frame))
            values[:, k] = spread_as_t(values[:, k], value, min(images), frame["cluster_id"].n_unique())
        return values.mean(axis=1)


DEFAULT = {"method": "psr", "baselines": ["other"], "datasets": ["slake", "ood6"], "split": "test"}


@pytest.fixture(scope="module")
def study():
    return Study()


def find(rows, **key):
    key = {"contrast": None, "baseline": None, **key}
    chosen = [row for row in rows if all(row.get(name) == value for name, value in key.items())]
    assert len(chosen) == 1, (key, len(chosen))
    return chosen[0]


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_intervals_and_p_values_are_those_of_the_literal_loop(study, metric):
    rows = study.compare(ContrastSpec(name="c", **DEFAULT))
    loops = {
        name: {
            "slake": study.literal("slake", name, metric),
            "ood6": (study.literal("a", name, metric) + study.literal("b", name, metric)) / 2,
        }
        for name in ("psr", "other")
    }
    for dataset in ("slake", "ood6"):
        own = find(rows, dataset=dataset, metric=metric, method="psr")
        expected = np.percentile(loops["psr"][dataset], [2.5, 97.5])
        assert (own["low"], own["high"]) == pytest.approx(tuple(expected), abs=1e-12)
        assert "p" not in own
        found = find(rows, contrast="c", dataset=dataset, metric=metric, method="psr", baseline="other")
        differences = loops["psr"][dataset] - loops["other"][dataset]
        assert (found["low"], found["high"]) == pytest.approx(tuple(np.percentile(differences, [2.5, 97.5])), abs=1e-12)
        fewest = min((differences <= 0).sum(), (differences >= 0).sum())
        assert found["p"] == min(1.0, 2 * (1 + fewest) / (B + 1))
        assert found["p_at_most"] is bool(fewest == 0)
        assert found["n_undefined"] == 0


def test_estimates_are_means_over_seeds_and_their_spread_apart(study):
    rows = study.compare(ContrastSpec(name="c", **{**DEFAULT, "baselines": ["other", "base"]}))
    of = {
        method: [ANSWER_METRICS["auroc"].value(Columns.of(study.frames["slake", method, seed])) for seed in seeds]
        for method, seeds in RUNS.items()
    }
    own = find(rows, dataset="slake", metric="auroc", method="psr")
    assert (own["estimate"], own["seed_std"], own["n_seeds"]) == (mean(of["psr"]), stdev(of["psr"]), 2)
    assert (own["n"], own["n_clusters"], own["short"]) == (60, 12, None)
    found = find(rows, contrast="c", dataset="slake", metric="auroc", method="psr", baseline="other")
    assert found["estimate"] == mean(of["psr"]) - mean(of["other"])
    assert found["seed_std"] == pytest.approx(stdev(a - b for a, b in zip(of["psr"], of["other"], strict=True)))
    # The base has one run, which stands beside both seeds.
    found = find(rows, contrast="c", dataset="slake", metric="auroc", method="psr", baseline="base")
    assert found["seed_std"] == pytest.approx(stdev(of["psr"]))
    assert found["n_seeds"] == 2
    base = find(rows, dataset="slake", metric="auroc", method="base")
    assert (base["seed_std"], base["n_seeds"]) == (None, 1)


def test_a_method_against_its_twin_differs_by_exactly_nothing(study):
    rows = study.compare(ContrastSpec(name="c", **{**DEFAULT, "baselines": ["twin"]}))
    found = [row for row in rows if row.get("contrast") == "c" and row["reason"] is None]
    assert len(found) == 2 * len(METRIC_NAMES)  # on the data set, and as a mean over data sets
    for row in found:
        assert (row["estimate"], row["low"], row["high"], row["seed_std"]) == (0.0, 0.0, 0.0, 0.0)
        assert (row["p"], row["p_holm"]) == (1.0, 1.0)


def all_correct_on_a(frame, dataset, method, seed):
    broken = (dataset, method, seed) == ("a", "psr", 29)
    return frame.with_columns(correct=pl.lit(True)) if broken else frame


def test_an_undefined_member_leaves_a_reason_all_the_way_up():
    rows = Study(all_correct_on_a).compare(ContrastSpec(name="c", **{**DEFAULT, "datasets": ["a", "b", "ood6"]}))
    why = "one class only: all 30 rows are correct"
    found = find(rows, contrast="c", dataset="a", metric="auroc", method="psr", baseline="other")
    assert found["reason"] == f"psr: seed 29: {why}"
    assert [found[name] for name in ("estimate", "seed_std", "low", "high", "p", "p_holm", "n_undefined")] == [None] * 7
    assert find(rows, dataset="ood6", metric="auroc", method="psr")["reason"] == f"seed 29: a: {why}"
    found = find(rows, contrast="c", dataset="ood6", metric="auroc", method="psr", baseline="other")
    assert found["reason"] == f"psr: seed 29: a: {why}"
    assert find(rows, contrast="c", dataset="ood6", metric="brier", method="psr", baseline="other")["p"] is not None
    assert find(rows, dataset="b", metric="auroc", method="psr")["estimate"] is not None


def errors_on(*images):
    def change(frame, dataset, method, seed):
        wrong = pl.col("cluster_id").is_in([f"{dataset}-{image:02d}" for image in images])
        return frame.with_columns(correct=~wrong) if method == "psr" else frame

    return change


def test_errors_on_one_image_leave_no_interval_of_the_auroc():
    rows = Study(errors_on(0)).compare(ContrastSpec(name="c", **DEFAULT))
    own = find(rows, dataset="slake", metric="auroc", method="psr")
    found = find(rows, contrast="c", dataset="slake", metric="auroc", method="psr", baseline="other")
    assert own["estimate"] is not None
    assert (own["low"], own["n_undefined"], found["low"], found["p"]) == (None, B, None, None)


def test_without_replicates_nothing_is_known_about_retrained_actors(study):
    none = {key: np.empty(0) for key in study.replicates}
    rows = compare(
        Results(study.metrics, lambda run, name: none[(*run, name)], {"ood6": ["a", "b"]}, METRIC_NAMES),
        [ContrastSpec(name="c", **DEFAULT)],
    )
    found = find(rows, contrast="c", dataset="slake", metric="brier", method="psr", baseline="other")
    names = ("low", "high", "p", "p_holm", "low_retrained", "high_retrained", "p_retrained", "p_holm_retrained")
    assert [found[name] for name in names] == [None] * 8


def test_resamples_without_a_value_are_counted_and_left_out():
    study = Study(errors_on(0, 1))
    rows = study.compare(ContrastSpec(name="c", **DEFAULT))
    stream = generator("s", "slake", "test", "bootstrap")
    drawn = [not {0, 1}.isdisjoint(stream.integers(0, 12, size=12).tolist()) for _ in range(B)]
    own = find(rows, dataset="slake", metric="auroc", method="psr")
    assert own["n_undefined"] == drawn.count(False) > 0
    values = study.replicates["tiny", 17, "psr", "slake/test/auroc"]
    both = (values + study.replicates["tiny", 29, "psr", "slake/test/auroc"]) / 2
    low, high = np.percentile(both[~np.isnan(both)], [2.5, 97.5])
    assert (own["low"], own["high"]) == (min(low, own["estimate"]), max(high, own["estimate"]))
    found = find(rows, contrast="c", dataset="slake", metric="auroc", method="psr", baseline="other")
    assert found["n_undefined"] == own["n_undefined"]


def test_a_contrast_is_made_where_it_asks(study):
    contrast = ContrastSpec(name="c", **{**DEFAULT, "datasets": ["slake"], "metrics": ["brier"]})
    found = [row for row in study.compare(contrast) if row.get("contrast")]
    assert [(row["dataset"], row["metric"]) for row in found] == [("slake", "brier")]
    elsewhere = ContrastSpec(name="c", **{**DEFAULT, "split": "validation"})
    assert not [row for row in study.compare(elsewhere) if row.get("contrast")]
    with pytest.raises(ConfigError, match=r"contrast c: no results of 'mine'\. Known: base, other, psr, twin"):
        study.compare(ContrastSpec(name="c", **{**DEFAULT, "baselines": ["mine"]}))


RUN = {"study": "s", "backbone": "tiny", "actor": "x", "dataset": "slake", "split": "test", "subset": "all",
       "low": None, "high": None, "n": 9, "n_clusters": 3, "reason": None}  # fmt: skip


def of_pairs(runs, flags=()):
    """Return the rows of a comparison of psr with other on SLAKE's donor pairs.

    Args:
        runs: By (method, seed), the values of six pairs on sources 0..5 and donors 6..11.
        flags: (method, metric, value) of further rows.
    """
    rows = [
        {**RUN, "method": method, "seed": seed, "metric": "natural_ccg_auc", "estimate": float(np.mean(values))}
        for (method, seed), values in runs.items()
    ]
    rows += [{**RUN, "method": method, "seed": 17, "metric": name, "estimate": v} for method, name, v in flags]

    def read(run, name):
        _, seed, method = run
        return PairValues(values=np.array(runs[method, seed]), source=np.arange(6), donor=np.arange(6) + 6)

    results = Results(from_rows(rows, METRICS), read, {}, ("natural_ccg_auc",))
    return compare(results, [ContrastSpec(name="c", **{**DEFAULT, "datasets": ["slake"]})])


@pytest.mark.parametrize(("flag", "expected"), [(0.0, None), (1.0, "donor"), (1 / 6, "donor"), (None, None)])
def test_one_weak_run_marks_ccg_and_its_difference_with_the_side(flag, expected):
    values = [1.0, 0.0, 1.0, 1.0, 0.5, 0.0]
    flags = [("psr", "natural_few_donors", 0.0), ("other", "natural_few_donors", flag)]
    found = of_pairs({("psr", 17): values, ("other", 17): values[::-1]}, flags)
    assert find(found, metric="natural_ccg_auc", method="psr")["short"] is None
    assert find(found, metric="natural_ccg_auc", method="other")["short"] == expected
    assert find(found, contrast="c", metric="natural_ccg_auc", method="psr", baseline="other")["short"] == expected


def test_a_difference_over_pairs_is_a_paired_t_test_where_no_two_pairs_share_an_image():
    one, other = [1.0, 1.0, 1.0, 0.5, 1.0, 0.0], [0.0, 0.5, 1.0, 0.0, 0.5, 0.5]
    found = find(of_pairs({("psr", 17): one, ("other", 17): other}), contrast="c", method="psr", baseline="other")
    # Each pair is left out thrice: with its source, with its donor, and alone. 12 images, so that V is
    # 11 / 12 x 2 S - 5 / 6 S = S with S the sum of the squared shifts; a t test's variance is 5 / 6 S.
    test = scipy.stats.ttest_rel(one, other)
    assert found["p"] == pytest.approx(2 * scipy.stats.t.sf(abs(test.statistic) * (5 / 6) ** 0.5, 5))
    assert not found["p_at_most"]
    assert (found["p_retrained"], found["low_retrained"]) == (None, None)
    assert found["n_undefined"] == 0


def test_no_p_value_that_the_pairs_cannot_give():
    found = of_pairs({("psr", 17): [1.0] * 6, ("other", 17): [0.0] * 4 + [1.0] * 2})
    row = find(found, contrast="c", method="psr", baseline="other")
    # Four pairs carry a difference: 2 x .5**4, as in the exact sign test.
    assert row["p"] >= 0.125
    row = find(
        of_pairs({("psr", 17): [1.0] * 6, ("other", 17): [0.0] * 6}), contrast="c", method="psr", baseline="other"
    )
    assert row["p"] == 2 * 0.5**6
    assert row["low"] < row["estimate"] == row["high"] == 1.0


@pytest.mark.parametrize("baseline", ["other", "base"])
def test_retrained_methods_have_the_variance_between_seeds_in_place_of_what_images_add_to_it(study, baseline):
    rows = study.compare(ContrastSpec(name="c", **{**DEFAULT, "baselines": [baseline]}))
    row = find(rows, contrast="c", dataset="slake", metric="brier", method="psr", baseline=baseline)
    of = {
        method: [study.replicates["tiny", seed, method, "slake/test/brier"] for seed in RUNS[method]]
        for method in ("psr", baseline)
    }
    differences = [one - other for one, other in zip(of["psr"], (of[baseline] * 2)[:2], strict=True)]
    replicates = np.mean(differences, axis=0)
    # What images do to one seed and not to the other: the sum of squares over K - 1 = 1, of a mean of K = 2.
    together = sum(np.var(values - replicates, ddof=1) for values in differences) / 2
    images, seeds = max(np.var(replicates, ddof=1) - together, 0.0), row["seed_std"] ** 2 / 2

    def half(tail):
        """The two parts of the variance have 11 and 1 degrees of freedom."""
        t_images, t_seeds = scipy.stats.t.isf(tail, [11, 1])
        return (images * t_images**2 + seeds * t_seeds**2) ** 0.5

    assert row["p_retrained"] > row["p"]
    assert half(row["p_retrained"] / 2) == pytest.approx(abs(row["estimate"]))
    assert (row["low_retrained"], row["high_retrained"]) == pytest.approx(
        (max(-1.0, row["estimate"] - half(0.025)), min(1.0, row["estimate"] + half(0.025)))
    )
    assert row["p_holm_retrained"] == row["p_retrained"]


def test_nothing_is_surer_for_retrained_actors_than_for_these():
    """Equal values of both seeds on other images: no variance between seeds, nor one that both have on an image."""
    sample = Resampled(replicates=np.linspace(-0.1, 0.3, 99), n_images=50)
    apart = {k: Resampled(replicates=0.1 + sign * sample.replicates, n_images=50) for k, sign in enumerate((-1, 1))}
    value = OverSeeds(estimate=0.1, by_seed={0: 0.1, 1: 0.1}, sample=sample, samples=apart, is_signed=True, n=50,
                      n_clusters=50, short=())  # fmt: skip
    row = value.columns()
    assert (row["low_retrained"], row["high_retrained"]) == (row["low"], row["high"])
    assert value.p_retrained().value == value.p().value


def test_the_squared_error_may_be_below_0_and_its_differences_are_paired(study):
    def read(run, name):
        return study.replicates[(*run, name)]

    metric = "squared_calibration_error"
    results = Results(study.metrics, read, {"ood6": ["a", "b"], "ood_ccg": []}, (metric,))
    rows = compare(results, [ContrastSpec(name="c", **{**DEFAULT, "baselines": ["other", "twin"]})])
    own = find(rows, dataset="slake", metric=metric, method="psr")
    of = {method: [study.replicates["tiny", seed, method, f"slake/test/{metric}"] for seed in (17, 29)]
          for method in ("psr", "other")}  # fmt: skip
    assert (own["low"], own["high"]) == pytest.approx(tuple(np.percentile(np.mean(of["psr"], axis=0), [2.5, 97.5])))
    # Not on the logit, of which a value below 0 has none.
    spread = np.var(np.mean(of["psr"], axis=0), ddof=1) + own["seed_std"] ** 2 / 2
    assert own["high_retrained"] - own["estimate"] == pytest.approx(own["estimate"] - own["low_retrained"])
    assert own["high_retrained"] - own["estimate"] > 1.96 * spread**0.5
    found = find(rows, contrast="c", dataset="slake", metric=metric, method="psr", baseline="other")
    differences = np.mean(of["psr"], axis=0) - np.mean(of["other"], axis=0)
    assert (found["low"], found["high"]) == pytest.approx(tuple(np.percentile(differences, [2.5, 97.5])))
    assert find(rows, contrast="c", dataset="slake", metric=metric, method="psr", baseline="twin")["p"] == 1.0


def test_a_mean_over_seeds_is_that_of_its_pairs():
    seeds = {17: [1.0, 0.0, 1.0, 1.0, 0.5, 0.0], 29: [1.0, 1.0, 0.0, 1.0, 0.5, 0.5]}
    both = [(a + b) / 2 for a, b in zip(*seeds.values(), strict=True)]
    other = [0.5] * 6
    mean_of = find(
        of_pairs({**{("psr", k): v for k, v in seeds.items()}, ("other", 17): other}),
        contrast="c", method="psr", baseline="other",
    )  # fmt: skip
    one = find(of_pairs({("psr", 17): both, ("other", 17): other}), contrast="c", method="psr", baseline="other")
    for name in ("estimate", "low", "high", "p"):
        assert mean_of[name] == pytest.approx(one[name]), name


def test_holm_is_over_the_baselines_of_one_cell(study):
    names = ["other", "base", "twin"]
    rows = study.compare(ContrastSpec(name="c", **{**DEFAULT, "baselines": names}))
    for dataset in ("slake", "ood6"):
        found = [find(rows, contrast="c", dataset=dataset, metric="brier", method="psr", baseline=n) for n in names]
        smallest, middle, largest = sorted(found, key=lambda row: row["p"])
        assert smallest["p_holm"] == pytest.approx(min(1.0, 3 * smallest["p"]))
        assert middle["p_holm"] == pytest.approx(max(smallest["p_holm"], min(1.0, 2 * middle["p"])))
        assert largest["p_holm"] == pytest.approx(max(middle["p_holm"], largest["p"]))


def test_a_difference_in_auroc_rests_on_the_images_with_wrong_answers():
    rows = Study(errors_on(0, 1)).compare(ContrastSpec(name="c", **{**DEFAULT, "datasets": ["slake", "ood6"]}))
    for dataset, images in (("slake", 2), ("ood6", 4)):
        found = find(rows, contrast="c", dataset=dataset, metric="auroc", method="psr", baseline="other")
        # Two images in each data set have all of psr's errors: 2 x .5**2 and 2 x .5**4.
        assert found["p"] >= 2 * 0.5**images
        assert not found["p_at_most"]

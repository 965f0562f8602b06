"""Groups of answers: values by hand, and beside the definitions of fairlearn's MetricFrame, Bonferroni, and Holm."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta

from dualread.evaluation.columns import CellColumns
from dualread.evaluation.estimates import estimate
from dualread.evaluation.join import Joined
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC, limits
from dualread.evaluation.statistics.bootstrap import ClusterDraws
from dualread.evaluation.subgroups import by_group, certified_rows, worst_groups

N = {"a": 40, "b": 30, "c": 10, "tiny": 9, None: 15}  # ten images have intervals
RIGHT = {"a": 30, "b": 12, "c": 5, "tiny": 3, None: 9}  # of these answers
B = 400


def joined(per_image=1):
    """Answers of groups; with several to an image, each image has answers of all groups. Confidences cross groups."""
    group = np.array([name for name, n in N.items() for _ in range(n)], dtype=object)
    correct = np.concatenate([np.arange(n) < RIGHT[name] for name, n in N.items()])
    n = len(group)
    image = np.arange(n) if per_image == 1 else np.arange(n) % (n // per_image)
    ids = [f"q{k:03d}" for k in range(n)]
    answers = {"sample_id": ids, "question_key": ids, "answer_type": ["open"] * n, "correct": correct}
    answers |= {"cluster_id": [f"i{k:03d}" for k in image], "imputed": [False] * n}
    answers |= {"confidence": np.random.default_rng(0).random(n) * 0.8 + 0.1 * correct}
    pairs = {"sample_id": ids, "answer_type": answers["answer_type"], "source_cluster_id": answers["cluster_id"]}
    pairs |= {"donor_cluster_id": np.roll(answers["cluster_id"], 1), "confidence_real": answers["confidence"]}
    pairs |= {"confidence_donor": np.roll(answers["confidence"], 7), "correct_real": correct}
    pairs |= {"correct_donor": np.roll(correct, 11), "canonical_answer_real": ids, "canonical_answer_donor": ids}
    labels = pl.DataFrame({"sample_id": ids, "group": pl.Series(list(group), dtype=pl.String)})
    tables = {"answers": pl.DataFrame(answers), "pairs": pl.DataFrame(pairs), "fixed": "none", "shuffled": "none"}
    return Joined(**tables), labels


def rows_of(evaluated, labels, replicates=B):
    draws = ClusterDraws(
        names=("test",), cluster_ids=tuple(sorted(set(evaluated.answers["cluster_id"]))), replicates=replicates
    )
    rows = by_group(evaluated, labels, draws)
    return rows, {(row["group"], row["metric"]): row for row in rows}, draws


@pytest.fixture(scope="module", params=[1, 3])
def found(request):
    evaluated, labels = joined(request.param)
    return evaluated, labels, *rows_of(evaluated, labels)


def test_a_group_has_the_metrics_and_intervals_of_its_rows_alone(found):
    evaluated, labels, rows, at, draws = found
    for name in N:  # MetricFrame.by_group: the metric of the rows with this value
        ids = labels.filter(pl.col("group").eq_missing(pl.lit(name)))["sample_id"].implode()
        chosen = pl.col("sample_id").is_in(ids)
        part = Joined(
            answers=evaluated.answers.filter(chosen), pairs=evaluated.pairs.filter(chosen), fixed="", shuffled=""
        )
        for row in estimate(CellColumns.of(part), draws)[0]:
            if row["subset"] == "all" and (name, row["metric"]) in at:
                mine = at[name, row["metric"]]
                assert (mine["estimate"], mine["n"], mine["n_clusters"]) == tuple(
                    row[key] for key in ("estimate", "n", "n_clusters")
                )
                if name != "tiny":
                    assert (mine["low"], mine["high"]) == (row["low"], row["high"])
    assert at["a", "accuracy"]["estimate"] == 30 / 40
    assert at["tiny", "accuracy"]["estimate"] == 3 / 9
    of_tiny = [row for row in rows if row["group"] == "tiny" and row["estimate"] is not None]
    assert all(row["low"] is row["simultaneous_low"] is row["p"] is None for row in of_tiny)
    assert "9 images, expected at least 10" in at["tiny", "accuracy"]["reason"]
    # Rows without a value are counted, and in no statement about groups.
    assert at[None, "accuracy"]["n"] == 15
    assert at[None, "accuracy"]["low"] is not None
    assert at[None, "accuracy"]["simultaneous_low"] is at[None, "accuracy"]["difference"] is None


def test_simultaneous_intervals_are_those_of_single_groups_at_a_third_of_the_level():
    evaluated, labels = joined()
    _, at, _ = rows_of(evaluated, labels)
    for name in "abc":  # one answer per image: the interval of Clopper and Pearson at .05 / 3
        x, n = RIGHT[name], N[name]
        low, high = beta.ppf(0.05 / 6, x, n - x + 1), beta.ppf(1 - 0.05 / 6, x + 1, n - x)
        row = at[name, "accuracy"]
        assert (row["simultaneous_low"], row["simultaneous_high"]) == pytest.approx((low, high))
        part = CellColumns.of(evaluated).pairs.where(labels["group"].eq_missing(name).to_numpy())
        ccg = at[name, "natural_ccg_auc"]
        ends = limits(NATURAL_CCG_AUC.of_pairs, part, ccg["estimate"], 0.05 / 3)
        assert (ccg["simultaneous_low"], ccg["simultaneous_high"]) == pytest.approx(ends)
    for metric in ("auroc", "brier", "aurc", "squared_calibration_error"):
        for name in "abc":
            row = at[name, metric]
            assert row["simultaneous_low"] < row["low"] < row["estimate"] < row["high"] < row["simultaneous_high"]


def test_at_the_usual_level_limits_are_the_percentiles(found):
    evaluated, labels, _, _, draws = found
    one = labels.with_columns(group=pl.lit("all"))  # of a single group, simultaneous and own intervals are one
    for row in by_group(evaluated, one, draws):
        if row["low"] is not None and row["metric"] != "squared_calibration_error":  # which has percentiles of draws
            assert (row["simultaneous_low"], row["simultaneous_high"]) == pytest.approx(
                (row["low"], row["high"]), abs=0.004
            )


def test_the_worst_group_and_its_interval(found):
    *_, rows, at, _ = found
    worst = {row["metric"]: row for row in worst_groups(rows)}
    for metric, extreme in (("accuracy", min), ("auroc", min), ("brier", max)):
        known = [at[name, metric] for name in "abc"]
        chosen = extreme(known, key=lambda row: row["estimate"])  # MetricFrame.group_min, or group_max
        assert worst[metric] == {
            "metric": metric,
            "group": chosen["group"],
            "estimate": chosen["estimate"],
            "low": extreme(row["simultaneous_low"] for row in known),
            "high": extreme(row["simultaneous_high"] for row in known),
            "n_groups": 3,
            "reason": None,
        }
    assert worst["accuracy"]["group"] == "b"  # 12 of 30; "tiny" has 3 of 9, and no interval
    assert worst["ece15"]["group"] is None
    assert worst["ece15"]["reason"]


def test_differences_are_those_to_all_other_groups_with_holms_method(found):
    *_, at, _ = found
    right, n = (sum(counts[name] for name in N if name is not None) for counts in (RIGHT, N))
    for name in "abc":
        rest = (right - RIGHT[name]) / (n - N[name])  # with the small group, without the rows that have none
        assert at[name, "accuracy"]["difference"] == pytest.approx(RIGHT[name] / N[name] - rest)
    for metric in ("accuracy", "auroc", "natural_ccg_auc"):
        of_metric = sorted((at[name, metric] for name in "abc"), key=lambda row: row["p"])
        largest = 0.0
        for k, row in enumerate(of_metric):
            largest = max(largest, min(1.0, (3 - k) * row["p"]))
            assert row["p_holm"] == pytest.approx(largest)
            assert row["difference_low"] <= row["difference"] <= row["difference_high"]


def test_each_of_two_groups_is_the_rest_of_the_other():
    evaluated, labels = joined()
    two = labels.with_columns(pl.col("group").replace(["b", "c", "tiny"], "a").fill_null("b"))
    rows, at, _ = rows_of(evaluated, two)
    first, second = at["a", "auroc"], at["b", "auroc"]
    assert first["difference"] == pytest.approx(-second["difference"])
    assert first["p"] == second["p"] == first["p_holm"] == second["p_holm"]
    worst = {row["metric"]: row for row in worst_groups(rows)}["accuracy"]
    assert (worst["group"], worst["n_groups"]) == ("a", 2)  # 50 of 89 answers are right, and 9 of 15


@pytest.mark.parametrize(("others", "expected"), [(0, 0.0), (44, None)])
def test_certified_thresholds_of_groups_share_delta(others, expected):
    # All of 40 answers are right: .9 ** 40 = .0148 is below .1 / 5, the share of one of five starts, and above .05 / 5,
    # that of two groups; .9 ** 44 = .0097 is below it, too.
    group = ["a"] * 40 + ["b"] * others
    ids = [str(k) for k in range(len(group))]
    answers = pl.DataFrame(
        {"group": group, "cluster_id": ids, "confidence": [0.995] * len(ids), "correct": [True] * len(ids)}
    )
    rows = {(row["group"], row["metric"]): row for row in certified_rows(answers, answers, [10])}
    row = rows["a", "certified_threshold_at_risk_10"]
    assert (row["estimate"], row["reason"] is None) == (expected, expected is not None)
    if others:
        assert rows["b", "certified_coverage_at_risk_10"]["estimate"] == 1.0
    alone = {(row["group"], row["metric"]): row for row in certified_rows(answers, answers.filter(group="b"), [10])}
    assert alone["a", "certified_coverage_at_risk_10"]["reason"] == "no validation answers of a"

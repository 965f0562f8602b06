import numpy as np
import polars as pl
import pytest

from dualread.evaluation.columns import Columns
from dualread.evaluation.statistics.proportion import share_interval
from dualread.evaluation.thresholds import Threshold, choose, decide, is_rate, threshold_rows


def answers(confidence, correct, images=None):
    images = images or [f"image {k}" for k in range(len(confidence))]
    return Columns.of(pl.DataFrame({"confidence": confidence, "correct": correct, "cluster_id": images}))


# from .9 on 0 of 1 is wrong, from .6 on 1 of 2, from .3 on 1 of 4
VALIDATION = answers([0.9, 0.6, 0.3, 0.3], [True, False, True, True])


def values(rows, certified=False):
    chosen = (row for row in rows if row["metric"].startswith("certified_") == certified)
    return {row["metric"].removeprefix("certified_"): row["estimate"] for row in chosen}


def test_a_threshold_is_chosen_on_validation_and_judged_on_test():
    test = answers([0.95, 0.9, 0.3, 0.29], [True, False, True, False])
    # 10%: from .9 on, which keeps two answers, one of them wrong; 30%: from .3 on, which keeps three
    assert values(threshold_rows(test, choose(VALIDATION, [10, 30]))) == {
        "threshold_at_risk_10": 0.9,
        "coverage_at_risk_10": 0.5,
        "kept_risk_at_risk_10": 0.5,
        "threshold_at_risk_30": 0.3,
        "coverage_at_risk_30": 0.75,
        "kept_risk_at_risk_30": pytest.approx(1 / 3),
    }


def test_where_no_threshold_reaches_the_risk_nothing_has_a_value():
    chosen = choose(answers([0.9, 0.5], [False, True]), [5], "patient")
    rows = list(threshold_rows(VALIDATION, chosen))
    assert values(rows) == dict.fromkeys(("threshold_at_risk_05", "coverage_at_risk_05", "kept_risk_at_risk_05"))
    assert {row["reason"] for row in rows} == {
        "validation: no threshold has a risk of 0.05 or less; the lowest is 0.500",
        "validation: no threshold is certified for a risk of 0.05 with delta 0.1: too few patients (2), even if all 2 "
        "answers were correct",
    }


def test_a_threshold_that_nothing_reaches_keeps_nothing_and_has_no_risk():
    test = list(threshold_rows(answers([0.1, 0.2], [True, True]), choose(VALIDATION, [10])))
    assert values(test) == {"threshold_at_risk_10": 0.9, "coverage_at_risk_10": 0.0, "kept_risk_at_risk_10": None}
    assert test[2]["reason"] == "no confidence reaches the threshold 0.9"


def test_a_certified_threshold_is_judged_beside_the_empirical_one():
    # Every third of 120 answers at .7 is wrong. All 420 answers have a risk of 40/420 < 10%, but P(Bin(420, .1) <= 40)
    # is .41, too much for all starts together. The start .8 is the last that passes; it keeps 300 right answers.
    validation = answers([0.99] * 300 + [0.7] * 120, [True] * 300 + [k % 3 > 0 for k in range(120)])
    test = answers([0.995, 0.99, 0.7, 0.1], [True, False, True, False])
    rows = list(threshold_rows(test, choose(validation, [10])))
    assert values(rows)["threshold_at_risk_10"] == 0.7
    expected = {"threshold_at_risk_10": 0.8, "coverage_at_risk_10": 0.5, "kept_risk_at_risk_10": 0.5}
    assert values(rows, certified=True) == expected


def test_answers_to_one_image_count_as_one():
    validation = answers([0.9] * 300, [True] * 300)
    one_image = answers([0.9] * 300, [True] * 300, ["a"] * 300)
    assert values(threshold_rows(validation, choose(validation, [10])), certified=True)["threshold_at_risk_10"] == 0.0
    chosen = choose(one_image, [10])
    assert values(threshold_rows(validation, chosen), certified=True)["threshold_at_risk_10"] is None
    assert values(threshold_rows(validation, chosen))["threshold_at_risk_10"] == 0.9


def test_shares_have_a_mean_over_data_sets_and_a_threshold_has_none():
    assert is_rate("coverage_at_risk_10")
    assert is_rate("kept_risk_at_risk_10")
    assert is_rate("certified_kept_risk_at_risk_10")
    assert not is_rate("certified_threshold_at_risk_10")
    assert not is_rate("threshold_at_risk_10")
    assert not is_rate("auroc")


def test_coverage_and_kept_risk_have_the_interval_of_a_share():
    test = answers([0.95, 0.9, 0.92, 0.29], [True, False, True, False], ["i", "i", "j", "k"])
    rows = {row["metric"]: row for row in threshold_rows(test, choose(VALIDATION, [10, 30]))}
    # From .9 on, three answers of two images are kept, one of them wrong.
    kept = rows["kept_risk_at_risk_10"]
    assert (kept["low"], kept["high"]) == share_interval(np.array([False, True, False]), np.array([0, 0, 1]))
    coverage = rows["coverage_at_risk_10"]
    positive = np.array([True, True, True, False])
    assert (coverage["low"], coverage["high"]) == share_interval(positive, np.array([0, 0, 1, 2]))
    assert (rows["threshold_at_risk_10"]["low"], rows["threshold_at_risk_10"]["high"]) == (None, None)


def test_a_reason_is_in_the_unit_of_the_answers_that_it_is_about():
    test = answers([0.9, 0.8], [True, False], ["a", "a"])
    rows = threshold_rows(test, choose(answers([0.9], [True]), [10], "image"), "patient")
    reasons = {row["metric"]: row["reason"] for row in rows}
    assert reasons["coverage_at_risk_10"] == "no interval: all rows are about one patient"
    assert "too few images (1)" in reasons["certified_coverage_at_risk_10"]


def test_what_keeps_nothing_has_an_interval_of_coverage_alone():
    test = {row["metric"]: row for row in threshold_rows(answers([0.1, 0.2], [True, True]), choose(VALIDATION, [10]))}
    assert test["coverage_at_risk_10"]["high"] == pytest.approx(1 - 0.025 ** (1 / 2))
    assert test["kept_risk_at_risk_10"]["low"] is None


@pytest.mark.parametrize("value", [0.0, 0.5, None])
def test_an_answer_without_a_confidence_is_kept_at_no_threshold(value):
    limit = Threshold(method="m", rule="empirical", target_risk_percent=10, value=value, reason="none")
    for threshold in (limit, None):
        decision = decide(None, threshold, "it has no answer")
        assert decision.keep is False
        assert "it has no answer" in decision.reason
    assert decide(0.6, limit).keep is (None if value is None else True)
    if value is not None:  # what is on the threshold is kept
        assert (decide(value, limit).keep, decide(value - 1e-9, limit).keep) == (True, False)
    assert decide(0.6, None).keep is None

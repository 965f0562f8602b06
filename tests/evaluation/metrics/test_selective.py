import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics.selective import (
    auarc,
    aurc,
    coverage,
    e_aurc,
    hce,
    kept_risk,
    prediction_rejection_ratio,
    risks,
    threshold,
)
from tests.evaluation.metrics import literal
from tests.evaluation.metrics.samples import cells, turned


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.booleans()), min_size=1, max_size=6))
def test_aurc_is_the_mean_over_all_orders(rows):
    confidence, correct = [c for c, _ in rows], [z for _, z in rows]
    assert aurc(confidence, correct) == pytest.approx(literal.aurc_over_orders(confidence, correct), abs=1e-12)


@given(cells, st.randoms())
def test_aurc_is_the_literal_definition_in_any_order_and_scale(cell, random):
    confidence, correct = cell
    value = aurc(confidence, correct)
    assert value == pytest.approx(literal.aurc(confidence.tolist(), correct.tolist()), abs=1e-12)
    assert aurc(*turned(random, confidence, correct)) == value
    ranks = np.unique(confidence, return_inverse=True)[1] / len(confidence)
    assert aurc(ranks, correct) == value


def test_hce_by_hand():
    # .9 counts as high; two of five rows are high and wrong; the denominator is all five
    assert hce([0.9, 0.95, 1.0, 0.89, 0.1], [False, True, False, False, False]) == 0.4


def test_the_curve_of_risks_shares_errors_inside_a_tie_and_has_the_area_for_its_mean():
    # .9 right; then .5, .5, one of them wrong: 1/2 an error each; then .1 wrong
    # kept 1: 0; 2: (1/2) / 2 = 1/4; 3: 1 / 3; 4: 2 / 4
    confidence, correct = [0.5, 0.9, 0.1, 0.5], [True, True, False, False]
    curve = risks(confidence, correct)
    assert curve.tolist() == pytest.approx([0.0, 1 / 4, 1 / 3, 1 / 2])
    assert curve.mean() == pytest.approx(aurc(confidence, correct))
    assert risks(confidence[::-1], correct[::-1]).tolist() == curve.tolist()


def test_a_threshold_by_hand():
    # from .9 on 0 of 1 is wrong, from .8 on 1 of 2, from .5 on 1 of 4, from .1 on 2 of 5
    confidence, correct = [0.5, 0.9, 0.8, 0.5, 0.1], [True, True, False, True, False]
    assert threshold(confidence, correct, target_risk=0.0) == 0.9
    assert threshold(confidence, correct, target_risk=0.25) == 0.5  # although .8 does not qualify
    assert threshold(confidence, correct, target_risk=0.4) == 0.1
    assert coverage(confidence, 0.5) == 4 / 5
    assert kept_risk(confidence, correct, threshold=0.5) == 1 / 4


def test_a_risk_that_is_met_exactly_is_met():
    correct = [False] * 29 + [True] * 71  # .29 * 100 is less than 29 in floating point
    assert threshold([0.5] * 100, correct, target_risk=0.29) == 0.5


@given(cells, st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]))
def test_a_threshold_is_the_smallest_that_qualifies(cell, target_risk):
    confidence, correct = cell
    qualify = [c for c in confidence if kept_risk(confidence, correct, threshold=c) <= target_risk]
    if not qualify:
        with pytest.raises(UndefinedMetricError):
            threshold(confidence, correct, target_risk=target_risk)
    else:
        assert threshold(confidence, correct, target_risk=target_risk) == min(qualify)


@pytest.mark.parametrize(
    ("confidence", "excess", "ratio"),
    [([0.9, 0.8, 0.2, 0.1], 0, 1), ([0.5] * 4, 7 / 24, 0), ([0.1, 0.2, 0.8, 0.9], 14 / 24, -1)],
)
def test_the_best_order_a_constant_and_the_worst_order(confidence, excess, ratio):
    correct = [True, True, False, False]
    # Best: 0, 0, 1/3, 1/2: 5/24. By chance 1/2 = 12/24. Worst: 1, 1, 2/3, 1/2: 19/24, so (12 - 19) / (12 - 5) = -1.
    assert e_aurc(confidence, correct) == pytest.approx(excess, abs=1e-15)
    assert prediction_rejection_ratio(confidence, correct) == pytest.approx(ratio, abs=1e-14)


@pytest.mark.parametrize("right", [True, False])
def test_one_class_has_no_rejection_ratio_and_no_excess(right):
    with pytest.raises(UndefinedMetricError, match="one class only"):
        prediction_rejection_ratio([0.2, 0.9], [right] * 2)
    assert e_aurc([0.2, 0.9], [right] * 2) == pytest.approx(0.0, abs=1e-15)
    assert auarc([0.2, 0.9], [right] * 2) == float(right)


@given(cells, st.randoms())
def test_the_rejection_metrics_are_the_literal_definitions_in_any_order_and_scale(cell, random):
    confidence, correct = cell
    area, best = literal.aurc(confidence.tolist(), correct.tolist()), float(literal.best_aurc(correct.tolist()))
    wrong = float((~correct).mean())
    assert auarc(confidence, correct) == pytest.approx(1 - area, abs=1e-12)
    assert e_aurc(confidence, correct) == pytest.approx(area - best, abs=1e-12)
    rows = turned(random, confidence, correct)
    for metric in (auarc, e_aurc):
        assert metric(*rows) == metric(confidence, correct)
    if 0 < wrong < 1:
        ratio = prediction_rejection_ratio(confidence, correct)
        assert ratio == pytest.approx((wrong - area) / (wrong - best), abs=1e-10)
        assert prediction_rejection_ratio(*rows) == ratio
        ranks = np.unique(confidence, return_inverse=True)[1] / len(confidence)
        assert prediction_rejection_ratio(ranks, correct) == ratio

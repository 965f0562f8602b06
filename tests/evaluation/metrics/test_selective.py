import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics.selective import aurc, coverage, hce, kept_risk, risks, threshold
from tests.evaluation.metrics import literal
from tests.evaluation.metrics.samples import cells


def test_aurc_by_hand():
    # order .9 right, .8 wrong, .1 right: risks 0/1, 1/2, 1/3 -> (0 + 1/2 + 1/3) / 3 = 5/18
    assert aurc([0.8, 0.9, 0.1], [False, True, True]) == pytest.approx(5 / 18, abs=1e-15)


def test_aurc_with_a_tie_by_hand():
    # .9 right; .5 twice, one wrong: risks 0, (1/2)/2 = 1/4 in expectation, 1/3 -> (1/4 + 1/3) / 3 = 7/36
    assert aurc([0.5, 0.9, 0.5], [False, True, True]) == pytest.approx(7 / 36, abs=1e-15)


def test_aurc_of_a_constant_is_the_error_rate():
    assert aurc([0.5] * 8, [True, False, False, True, True, True, True, True]) == 0.25


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.booleans()), min_size=1, max_size=6))
def test_aurc_is_the_mean_over_all_orders(rows):
    confidence, correct = [c for c, _ in rows], [z for _, z in rows]
    assert aurc(confidence, correct) == pytest.approx(literal.aurc_over_orders(confidence, correct), abs=1e-12)


@given(cells, st.randoms())
def test_aurc_is_the_literal_definition_in_any_order_and_scale(cell, random):
    confidence, correct = cell
    value = aurc(confidence, correct)
    assert value == pytest.approx(literal.aurc(confidence.tolist(), correct.tolist()), abs=1e-12)
    order = list(range(len(correct)))
    random.shuffle(order)
    assert aurc(confidence[order], correct[order]) == value
    ranks = np.unique(confidence, return_inverse=True)[1] / len(confidence)
    assert aurc(ranks, correct) == value


def test_hce_by_hand():
    # .9 counts as high; two of five rows are high and wrong; the denominator is all five
    assert hce([0.9, 0.95, 1.0, 0.89, 0.1], [False, True, False, False, False]) == 0.4


def test_hce_of_a_timid_method_is_zero():
    assert hce([0.5, 0.5], [False, False]) == 0.0


@given(cells)
def test_hce_is_the_literal_definition(cell):
    confidence, correct = cell
    wrong = sum(1 for c, z in zip(confidence, correct, strict=True) if c >= 0.9 and not z)
    assert hce(confidence, correct) == wrong / len(correct)


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

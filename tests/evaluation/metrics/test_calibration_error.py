import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as scikit_learns_log_loss

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics.calibration_error import (
    bins,
    brier,
    brier_parts,
    calibration_in_the_large,
    calibration_slope,
    ece,
    ece_equal_mass,
    equal_mass_bins,
    log_loss,
)
from tests.evaluation.metrics import literal
from tests.evaluation.metrics.samples import cells, turned


def test_fifths_and_every_edge_open_their_bin():
    assert bins([0.2, 0.4, 0.6, 0.8, 1.0]).tolist() == [3, 6, 9, 12, 14]
    assert bins([k / 15 for k in range(15)]).tolist() == list(range(15))
    assert bins([np.nextafter(k / 15, 0) for k in range(1, 15)]).tolist() == list(range(14))


def test_every_stated_percentage_lands_by_integer_arithmetic():
    percents = range(101)
    expected = [min(percent * 15 // 100, 14) for percent in percents]  # exact in integers
    assert bins([percent / 100 for percent in percents]).tolist() == expected


def test_ece_by_hand():
    # bin [.2, .267): .2 wrong, .25 right: |1 - .45| = .55; last bin: 1.0 right, .95 wrong: |1 - 1.95| = .95
    # (.55 + .95) / 4 = .375
    assert ece([0.2, 0.25, 1.0, 0.95], [False, True, True, False]) == pytest.approx(0.375, abs=1e-15)


@given(cells, st.randoms())
def test_ece_is_the_literal_definition_in_any_order(cell, random):
    confidence, correct = cell
    value = ece(confidence, correct)
    assert value == pytest.approx(literal.ece(confidence, correct), abs=1e-12)
    assert ece(*turned(random, confidence, correct)) == value


@given(cells, st.randoms())
def test_brier_is_scikit_learns_in_any_order(cell, random):
    confidence, correct = cell
    value = brier(confidence, correct)
    assert value == pytest.approx(brier_score_loss(correct, confidence, pos_label=True), abs=1e-12)
    assert brier(*turned(random, confidence, correct)) == value


def test_the_parts_of_the_brier_score_by_hand():
    # .8 with 3 of 4 right, .2 with none of 2 right; accuracy 1/2. Reliability (4 * .05^2 + 2 * .2^2) / 6 = .015,
    # resolution (4 * .25^2 + 2 * .5^2) / 6 = .125, uncertainty 1/4: Brier .14
    confidence, correct = [0.8] * 4 + [0.2] * 2, [True] * 3 + [False] * 3
    assert brier_parts(confidence, correct) == pytest.approx((0.015, 0.125, 0.25), abs=1e-15)
    # One bin with .5 wrong and .52 right: reliability .01^2; within it, variance .01^2 and covariance .01 * .5.
    assert brier_parts([0.5, 0.52], [False, True]) == pytest.approx((0.0001, 0.0099, 0.25), abs=1e-15)
    assert brier_parts([0.3, 0.3], [True, True]) == pytest.approx((0.49, 0.0, 0.0), abs=1e-15)


@given(cells, st.sampled_from([1, 2, 15]), st.randoms())
def test_the_parts_of_the_brier_score_add_up_to_it_in_any_order(cell, n_bins, random):
    confidence, correct = cell
    parts = brier_parts(confidence, correct, n_bins=n_bins)
    assert parts.reliability - parts.resolution + parts.uncertainty == pytest.approx(brier(confidence, correct))
    assert brier_parts(*turned(random, confidence, correct), n_bins=n_bins) == parts


def test_log_loss_by_hand_and_where_it_is_infinite():
    # -ln(.8) of a right row and -ln(1 - .6) of a wrong one
    assert log_loss([0.8, 0.6], [True, False]) == pytest.approx(-(np.log(0.8) + np.log(0.4)) / 2, abs=1e-15)
    assert log_loss([1.0, 0.0], [True, False]) == 0.0  # certain and right costs nothing
    with pytest.raises(UndefinedMetricError, match="2 of 4"):
        log_loss([1.0, 0.0, 0.5, 1.0], [False, True, True, True])
    assert log_loss([1.0, 0.5], [False, True], clip=0.01) == pytest.approx(-(np.log(0.01) + np.log(0.5)) / 2)
    with pytest.raises(ValueError, match="clip"):
        log_loss([0.5], [True], clip=0.5)


@given(cells, st.randoms())
def test_log_loss_is_scikit_learns_in_any_order(cell, random):
    confidence, correct = np.clip(cell[0], 1e-6, 1 - 1e-6), cell[1]
    expected = scikit_learns_log_loss(correct, confidence, labels=[False, True])
    assert log_loss(confidence, correct) == pytest.approx(expected, abs=1e-9)
    assert log_loss(*turned(random, confidence, correct)) == log_loss(*cell, clip=1e-6)


def test_calibration_in_the_large_by_hand():
    # constant confidence .5 (log-odds 0), three of four right: sigmoid(a) = 3/4, a = ln 3
    assert calibration_in_the_large([0.5] * 4, [True, True, True, False]) == pytest.approx(np.log(3), abs=1e-12)


def test_slope_and_intercept_of_a_saturated_model():
    # log-odds l at confidence .75 with 3/5 right, -l at .25 with 1/5 right, l = ln 3: the two-point fit is exact,
    # b = (logit(.6) - logit(.2)) / (2 l)
    confidence = [0.75] * 5 + [0.25] * 5
    correct = [True] * 3 + [False] * 2 + [True] + [False] * 4
    expected = (logit(0.6) - logit(0.2)) / (2 * np.log(3))
    assert calibration_slope(confidence, correct) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_recalibration_is_the_maximum_of_the_likelihood(seed):
    generator = np.random.default_rng(seed)
    truth = generator.normal(size=120) * 2
    correct = generator.random(120) < expit(0.5 * truth - 0.7)
    confidence = expit(truth)
    log_odds = logit(confidence)

    def loss(parameters):
        line = parameters[0] + parameters[1] * log_odds
        return np.mean(np.logaddexp(0, line) - correct * line)

    both = minimize(loss, [0.0, 1.0], method="BFGS", options={"gtol": 1e-10})
    assert calibration_slope(confidence, correct) == pytest.approx(both.x[1], abs=1e-6)
    one = minimize(lambda a: loss([a[0], 1.0]), [0.0], method="BFGS", options={"gtol": 1e-10})
    assert calibration_in_the_large(confidence, correct) == pytest.approx(one.x[0], abs=1e-6)


def test_an_overlap_by_one_float_still_has_its_slope():
    # Log-odds -1.5, 0 | d, 1.5 with the two middle rows the wrong way round by d = 2 ** -51. At the threshold between
    # them, the middle rows pull by d / 2 against 2 * 1.5 * exp(-1.5 b) of the outer ones: b = ln(6 / d) / 1.5.
    confidence = expit(np.array([-1.5, 0.0, 0.0, 1.5]))
    confidence[2] = np.nextafter(0.5, 1)
    assert logit(confidence[2]) == 2.0**-51
    assert calibration_slope(confidence, [False, True, False, True]) == pytest.approx(np.log(6 * 2**51) / 1.5, rel=1e-6)


def test_extreme_log_odds_are_estimable():
    confidence = expit(np.array([-600.0, 30.0, 5.0, -4.0, 3.0, -2.0, 35.0]))
    correct = [False, True, False, True, True, False, True]
    assert np.isfinite(calibration_in_the_large(confidence, correct))
    assert np.isfinite(calibration_slope(confidence, correct))


def test_bins_of_equal_mass_by_hand():
    assert equal_mass_bins([0.1, 0.9, 0.2, 0.8], n_bins=2).tolist() == [0, 1, 0, 1]
    assert equal_mass_bins([0.95, 0.96, 0.97], n_bins=3).tolist() == [0, 1, 2]  # equal width would put them into one
    # .5 three times, none below: its middle is (3 - 1) / 2 = 1 of 4 rows, so bin 2 x 1 / 4 = 0; .7 has 3 below: bin 1
    assert equal_mass_bins([0.5, 0.7, 0.5, 0.5], n_bins=2).tolist() == [0, 1, 0, 0]
    assert set(equal_mass_bins([0.5] * 7).tolist()) == {6}  # 15 x 3 / 7 = 6.4
    assert equal_mass_bins([]).tolist() == []


@given(cells, st.randoms())
def test_ece_of_equal_mass_is_the_literal_definition_in_any_order(cell, random):
    confidence, correct = cell
    value = ece_equal_mass(confidence, correct)
    assert value == pytest.approx(literal.ece_equal_mass(confidence.tolist(), correct.tolist()), abs=1e-12)
    assert ece_equal_mass(*turned(random, confidence, correct)) == value


def test_the_slope_is_found_where_a_faster_method_went_on_for_ever():
    """Chandrupatla's went on in steps of the tolerance, because values near the root are rounding alone."""
    confidence, correct = [0.5, 0.8, 0.99, 0.05, 0.1, 0.9, 0.99], np.array([1, 1, 0, 1, 0, 1, 0], bool)
    z, sign = logit(confidence), np.where(correct, 1.0, -1.0)
    found = minimize(lambda ab: -np.log(expit(sign * (ab[0] + ab[1] * z))).sum(), (0.0, 0.0))
    assert calibration_slope(confidence, correct) == pytest.approx(found.x[1], abs=1e-4)


def test_the_slope_is_found_where_it_is_exactly_zero():
    """Its derivative is 0 at the first end of the search, so that the ends have no different signs."""
    assert calibration_slope([0.2, 0.8, 0.2, 0.8], [True, True, False, False]) == pytest.approx(0.0, abs=1e-12)

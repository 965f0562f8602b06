"""Log-odds, and their two maps to confidences: by hand, against optimizers, and of any scores."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from dualread.readers.calibration.log_odds import CalibrationError, log_odds, mean_cross_entropy, sigmoid
from dualread.readers.calibration.platt import fit_platt
from dualread.readers.calibration.temperature import fit_temperature
from tests.drawn import attempt, few, numbers


@few
@given(st.lists(st.tuples(numbers, st.booleans()), max_size=8), st.sampled_from([fit_platt, fit_temperature]))
def test_any_scores_are_calibrated_or_refused(rows, fit):
    scores = np.array([score for score, _ in rows], dtype=float)
    correct = np.array([z for _, z in rows], dtype=bool)
    fitted, error = attempt(lambda: fit(scores, correct), CalibrationError, ValueError)
    assert error is None or str(error)
    if fitted is not None:
        assert np.isfinite(scores).all()
        confidence = fitted.confidence(scores) if fit is fit_platt else sigmoid(scores / fitted.value)
        assert ((confidence >= 0) & (confidence <= 1)).all()


def test_stable_at_both_ends():
    assert sigmoid([-1000.0, 40.0, 1e308]).tolist() == [0.0, 1.0, 1.0]
    assert 0.0 < sigmoid(-700.0) < 1e-300
    assert log_odds([0.0, 1.0]).tolist() == [-math.inf, math.inf]
    assert sigmoid(np.float32(20.0)).dtype == np.float64
    assert sigmoid(np.float32(20.0)) < 1.0  # a float32 sigmoid is exactly 1 here


@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.1])
def test_a_probability_outside_its_range_is_refused(bad):
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        log_odds([0.5, bad])


def test_cross_entropy_of_a_confident_mistake_is_finite():
    assert mean_cross_entropy([1000.0, 1000.0], [True, False]) == 500.0


def test_platt_by_hand():
    # score 1 is right three times in four, score 0 once: intercept ln(1/3), slope ln 3 - ln(1/3) = 2 ln 3
    found = fit_platt([1.0] * 4 + [0.0] * 4, [True] * 3 + [False] + [True] + [False] * 3)
    assert found.slope == pytest.approx(2 * np.log(3), abs=1e-9)
    assert found.intercept == pytest.approx(-np.log(3), abs=1e-9)
    assert not found.clipped
    assert found.confidence([1.0, 0.0]) == pytest.approx([0.75, 0.25], abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_platt_is_the_maximum_of_the_likelihood(seed):
    generator = np.random.default_rng(seed)
    score = generator.normal(size=100) * 7 + 3
    correct = generator.random(100) < sigmoid(score / 5 - 1)
    found = fit_platt(score, correct)
    best = minimize(lambda p: mean_cross_entropy(p[0] * score + p[1], correct), [0.0, 0.0], options={"gtol": 1e-10})
    assert (found.slope, found.intercept) == pytest.approx(tuple(best.x), abs=1e-5)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e12])
def test_scores_of_any_unit_are_clipped_alike_and_stay_distinct(unit):
    score = np.array([0.0] * 4 + [1.0] * 4) * unit
    upside_down = fit_platt(score, [True] * 3 + [False] + [True] + [False] * 3)
    assert upside_down.clipped
    # The two closest entropies of 32 samples are 2.3e-7 apart.
    close = upside_down.confidence(np.array([0.4, 0.4 + 2.3e-7]) * unit)
    assert close[0] < close[1]
    assert close == pytest.approx([0.5, 0.5], abs=1e-8)
    right_way = fit_platt(score, [True] + [False] * 3 + [True] * 3 + [False])
    assert not right_way.clipped
    assert right_way.slope * unit == pytest.approx(2 * np.log(3), abs=1e-9)


def test_a_constant_score_becomes_the_base_rate():
    found = fit_platt([5.0] * 4, [True, True, True, False])
    assert found.clipped
    assert found.confidence([5.0]) == pytest.approx([0.75], abs=1e-12)


def test_temperature_by_hand():
    # log-odds +-2 ln 3, right three times in four: sigmoid(2 ln 3 / T) = 3/4 where 2 ln 3 / T = ln 3, so T = 2
    value = 2 * math.log(3)
    found = fit_temperature([value] * 4 + [-value] * 4, [True] * 3 + [False] + [False] * 3 + [True])
    assert found.value == pytest.approx(2.0, abs=1e-6)
    assert not found.at_bound


def sample(seed, scale, n=150):
    generator = np.random.default_rng(seed)
    truth = generator.normal(size=n) * 1.5
    return truth * scale, generator.random(n) < sigmoid(truth)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [0.3, 1.0, 6.0])
def test_a_temperature_is_scikit_learns_logistic_regression_through_the_origin(seed, scale):
    z, correct = sample(seed, scale)
    model = LogisticRegression(C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    slope = model.fit(z[:, np.newaxis], correct).coef_[0, 0]
    assert fit_temperature(z, correct).value == pytest.approx(1 / slope, rel=1e-6)


def test_hit_bounds_are_exact_and_recorded():
    separated = fit_temperature([2.0, -2.0], [True, False])  # sharper is always better
    assert (separated.value, separated.at_bound) == (0.05, True)
    upside_down = fit_temperature([2.0, -2.0], [False, True])  # flatter is always better
    assert (upside_down.value, upside_down.at_bound) == (20.0, True)


def test_all_zero_log_odds_leave_the_temperature_at_one():
    found = fit_temperature([0.0, 0.0], [True, False])
    assert (found.value, found.at_bound) == (1.0, False)


def test_a_temperature_of_huge_log_odds():
    found = fit_temperature([800.0, -900.0, 700.0, -700.0], [True, False, False, True])
    assert (found.value, found.at_bound) == (20.0, True)


@pytest.mark.parametrize(("z", "correct"), [([math.nan, 1.0], [True, False]), ([1.0], [True, False])])
def test_malformed_log_odds(z, correct):
    with pytest.raises(ValueError, match="fit_temperature"):
        fit_temperature(z, correct)

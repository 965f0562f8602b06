import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dualread.readers.calibration.log_odds import sigmoid
from dualread.readers.calibration.temperature import fit_temperature


def test_by_hand():
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
def test_is_scikit_learns_logistic_regression_through_the_origin(seed, scale):
    log_odds, correct = sample(seed, scale)
    model = LogisticRegression(C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    slope = model.fit(log_odds[:, np.newaxis], correct).coef_[0, 0]
    assert fit_temperature(log_odds, correct).value == pytest.approx(1 / slope, rel=1e-6)


def test_hit_bounds_are_exact_and_recorded():
    separated = fit_temperature([2.0, -2.0], [True, False])  # sharper is always better
    assert (separated.value, separated.at_bound) == (0.05, True)
    upside_down = fit_temperature([2.0, -2.0], [False, True])  # flatter is always better
    assert (upside_down.value, upside_down.at_bound) == (20.0, True)


def test_all_zero_log_odds_leave_the_temperature_at_one():
    found = fit_temperature([0.0, 0.0], [True, False])
    assert (found.value, found.at_bound) == (1.0, False)


def test_huge_log_odds():
    found = fit_temperature([800.0, -900.0, 700.0, -700.0], [True, False, False, True])
    assert (found.value, found.at_bound) == (20.0, True)


@pytest.mark.parametrize(("log_odds", "correct"), [([math.nan, 1.0], [True, False]), ([1.0], [True, False])])
def test_malformed(log_odds, correct):
    with pytest.raises(ValueError, match="fit_temperature"):
        fit_temperature(log_odds, correct)

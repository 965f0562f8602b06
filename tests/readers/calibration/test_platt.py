import numpy as np
import pytest
from scipy.optimize import minimize

from dualread.readers.calibration.log_odds import mean_cross_entropy, sigmoid
from dualread.readers.calibration.platt import fit_platt


def test_by_hand():
    # score 1 is right three times in four, score 0 once: intercept ln(1/3), slope ln 3 - ln(1/3) = 2 ln 3
    found = fit_platt([1.0] * 4 + [0.0] * 4, [True] * 3 + [False] + [True] + [False] * 3)
    assert found.slope == pytest.approx(2 * np.log(3), abs=1e-9)
    assert found.intercept == pytest.approx(-np.log(3), abs=1e-9)
    assert not found.clipped
    assert found.confidence([1.0, 0.0]) == pytest.approx([0.75, 0.25], abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_is_the_maximum_of_the_likelihood(seed):
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

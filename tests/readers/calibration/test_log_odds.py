import math

import numpy as np
import pytest

from dualread.readers.calibration.log_odds import log_odds, mean_cross_entropy, sigmoid


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

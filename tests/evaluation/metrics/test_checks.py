import numpy as np
import pytest

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics import calibration_error, discrimination, selective
from dualread.evaluation.metrics.correctness import accuracy

PAIR_METRICS = [
    discrimination.auroc,
    calibration_error.ece,
    calibration_error.brier,
    calibration_error.calibration_in_the_large,
    calibration_error.calibration_slope,
    selective.aurc,
    selective.hce,
    lambda c, z: discrimination.within_question_auroc(c, z, ["q"] * len(z)),
]


@pytest.mark.parametrize("metric", PAIR_METRICS)
class TestMalformed:
    @pytest.mark.parametrize("bad", [np.nan, -0.01, 1.0000001, np.inf])
    def test_a_confidence_outside_its_range_is_refused_by_row(self, metric, bad):
        with pytest.raises(ValueError, match="row 1 is"):
            metric([0.5, bad], [True, False])

    def test_lengths_must_agree(self, metric):
        with pytest.raises(ValueError, match="lengths differ"):
            metric([0.5, 0.6, 0.7], [True, False])

    def test_correct_must_be_boolean(self, metric):
        with pytest.raises(ValueError, match="expected booleans"):
            metric([0.5, 0.6], [1.0, float("nan")])

    def test_two_dimensions_are_refused(self, metric):
        with pytest.raises(ValueError, match="one dimension"):
            metric([[0.5, 0.6]], [[True, False]])

    def test_empty_is_undefined(self, metric):
        with pytest.raises(UndefinedMetricError, match="no rows"):
            metric([], [])


def test_malformed_is_not_undefined():
    with pytest.raises(ValueError, match="row 0") as caught:
        discrimination.auroc([np.nan], [True])
    assert not isinstance(caught.value, UndefinedMetricError)


def test_accuracy():
    assert accuracy([True, False, True, True]) == 0.75  # 3 / 4
    assert accuracy([1, 0]) == 0.5
    with pytest.raises(UndefinedMetricError, match="no rows"):
        accuracy([])
    with pytest.raises(ValueError, match="expected booleans"):
        accuracy([0, 2])

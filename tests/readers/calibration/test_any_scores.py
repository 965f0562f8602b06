"""Any scores: calibrated, or refused."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dualread.readers.calibration.log_odds import CalibrationError, sigmoid
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

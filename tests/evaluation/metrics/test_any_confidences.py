"""Any confidences: a number in range, or the reason why there is none."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics import calibration_chance, calibration_error, discrimination, grounding, selective
from dualread.evaluation.statistics.bootstrap import ClusterDraws, image_cluster_replicates, interval
from dualread.evaluation.statistics.kernels import auroc_kernel, mean_kernel, rank_kernel
from tests.drawn import attempt, few, numbers

METRICS = {
    "ece": (calibration_error.ece, 0, 1),
    "noise floor": (
        lambda c, z: calibration_chance.ece_noise_floor(c, z, np.arange(len(z)), len(z), ("a",)),
        0,
        1,
    ),
    "squared error": (lambda c, z: calibration_chance.squared_calibration_error(c, z, np.arange(len(z))), -1, 1),
    "brier": (calibration_error.brier, 0, 1),
    "calibration_in_the_large": (calibration_error.calibration_in_the_large, -math.inf, math.inf),
    "calibration_slope": (calibration_error.calibration_slope, -math.inf, math.inf),
    "auroc": (discrimination.auroc, 0, 1),
    "aurc": (selective.aurc, 0, 1),
    "hce": (selective.hce, 0, 1),
    "auarc": (selective.auarc, 0, 1),
    "e_aurc": (selective.e_aurc, 0, 1),
    "prr": (selective.prediction_rejection_ratio, -math.inf, 1),
    "log loss": (calibration_error.log_loss, 0, math.inf),
    "reliability": (lambda c, z: calibration_error.brier_parts(c, z).reliability, 0, 1),
    "resolution": (lambda c, z: calibration_error.brier_parts(c, z).resolution, -1, 1),
    "uncertainty": (lambda c, z: calibration_error.brier_parts(c, z).uncertainty, 0, 0.25),
    "aupr of errors": (discrimination.aupr_errors, 0, 1),
    "fpr at 95": (discrimination.fpr_at_95_tpr, 0, 1),
    "equal mass": (calibration_error.ece_equal_mass, 0, 1),
    "one question": (lambda c, z: discrimination.within_question_auroc(c, z, ["q"] * len(z)), 0, 1),
    "a question a row": (lambda c, z: discrimination.within_question_auroc(c, z, list(map(str, range(len(z))))), 0, 1),
    "natural": (lambda c, z: grounding.natural_ccg_auc(c, c[::-1], z, ~z[::-1]), 0, 1),
    "strict": (lambda c, z: grounding.strict_ccg_auc(c, c[::-1], z, ~z[::-1], ["a"] * len(z), ["a"] * len(z)), 0, 1),
}


@pytest.mark.parametrize("name", METRICS)
@few
@given(st.lists(st.tuples(numbers, st.booleans()), max_size=8), st.booleans(), st.booleans())
def test_any_confidences_give_a_number_in_range_or_a_reason(name, rows, constant, one_class):
    metric, low, high = METRICS[name]
    confidence = np.array([rows[0][0] if constant else c for c, _ in rows], dtype=float)
    correct = np.array([rows[0][1] if one_class else z for _, z in rows], dtype=bool)
    valid = bool(((confidence >= 0) & (confidence <= 1)).all())
    value, error = attempt(lambda: metric(confidence, correct), ValueError)
    if not valid:
        assert re.match(r"confidence\w*: row \d+ is .*, expected a probability", str(error))
    elif error is not None:
        assert isinstance(error, UndefinedMetricError)
        assert str(error)
    else:
        assert math.isfinite(value)
        assert low <= value <= high


@few
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=8), st.booleans())
def test_one_cluster_and_none_give_the_estimate_in_every_replicate_or_nothing(rows, constant):
    c = np.array([0.5 if constant else confidence for confidence, _ in rows], dtype=float)
    z = np.array([label for _, label in rows], dtype=bool)
    cluster, draws = np.zeros(len(rows), dtype=int), ClusterDraws(names=("one",), cluster_ids=("a",), replicates=3)
    kernels = {
        "brier": mean_kernel((c - z) ** 2, cluster, 1),
        "auroc": auroc_kernel(c, z, cluster, 1),
        "aurc": lambda weights: rank_kernel(c, z, cluster, 1)(weights)[1],
    }
    for name, replicates in image_cluster_replicates(kernels, draws).items():
        value, _ = attempt(lambda name=name: METRICS[name][0](c, z), UndefinedMetricError)
        found = interval(replicates)
        if value is None:
            assert (found.low, found.high, found.n_undefined) == (None, None, 3)
        else:
            assert (found.low, found.high) == pytest.approx((value, value), abs=1e-12)

"""Metrics that others report besides: `dualread evaluate` has them all, a study those that its `metrics.further` names.

They are functions of AURC and accuracy, or another choice of bins, and have no intervals of their own.
"""

from dualread.evaluation.columns import on_columns
from dualread.evaluation.metric import AnswerMetric
from dualread.evaluation.metrics import calibration_error, selective

ECE_EQUAL_MASS = AnswerMetric(
    name="ece15_equal_mass",
    head="ECE, equal mass",
    better="lower",
    value=on_columns(calibration_error.ece_equal_mass, "confidence", "correct"),
    is_of_probabilities=True,
)
AUARC = AnswerMetric(
    name="auarc",
    head="AUARC",
    better="higher",
    value=on_columns(selective.auarc, "confidence", "correct"),
)
E_AURC = AnswerMetric(
    name="e_aurc",
    head="E-AURC",
    better="lower",
    value=on_columns(selective.e_aurc, "confidence", "correct"),
)
PREDICTION_REJECTION_RATIO = AnswerMetric(
    name="prediction_rejection_ratio",
    head="PRR",
    better="higher",
    value=on_columns(selective.prediction_rejection_ratio, "confidence", "correct"),
    is_signed=True,
)

FURTHER_METRICS: dict[str, AnswerMetric] = {
    metric.name: metric for metric in (ECE_EQUAL_MASS, AUARC, E_AURC, PREDICTION_REJECTION_RATIO)
}

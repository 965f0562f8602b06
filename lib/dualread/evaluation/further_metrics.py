"""Metrics that others report besides: `dualread evaluate` has them all, a study those that its `metrics.further` names.

They are functions of AURC and accuracy, or another choice of bins, and have no intervals of their own.
"""

from dualread.evaluation.columns import on_columns
from dualread.evaluation.metric import AnswerMetric
from dualread.evaluation.metrics import calibration_error, selective

ECE_EQUAL_MASS = AnswerMetric(
    name="ece15_equal_mass",
    meaning="calibration error over 15 bins of about equally many answers; lower is better",
    head="ECE, equal mass",
    better="lower",
    value=on_columns(calibration_error.ece_equal_mass, "confidence", "correct"),
    is_of_probabilities=True,
)
AUARC = AnswerMetric(
    name="auarc",
    meaning="mean share of correct answers among the k most confident, over all k: 1 - aurc; higher is better",
    said="AUARC: area under the accuracy-rejection curve, 1 minus AURC.",
    head="AUARC",
    better="higher",
    value=on_columns(selective.auarc, "confidence", "correct"),
)
E_AURC = AnswerMetric(
    name="e_aurc",
    meaning="aurc minus that of the best order of these answers; 0 is best",
    said="E-AURC: AURC minus that of the best order, in which all incorrect answers come last.",
    head="E-AURC",
    better="lower",
    value=on_columns(selective.e_aurc, "confidence", "correct"),
)
PREDICTION_REJECTION_RATIO = AnswerMetric(
    name="prediction_rejection_ratio",
    meaning="1 if rejection by confidence keeps the fewest errors, 0 as by chance, negative if worse",
    said="PRR: prediction rejection ratio, how far rejection by confidence goes from chance (0) to the best order (1).",
    head="PRR",
    better="higher",
    value=on_columns(selective.prediction_rejection_ratio, "confidence", "correct"),
    is_signed=True,
)

FURTHER_METRICS: dict[str, AnswerMetric] = {
    metric.name: metric for metric in (ECE_EQUAL_MASS, AUARC, E_AURC, PREDICTION_REJECTION_RATIO)
}

"""Metrics of confidences, as pure functions of numpy arrays.

    >>> from dualread.evaluation.metrics import auroc, natural_ccg_auc
    >>> auroc([0.9, 0.8, 0.3], [True, False, False])
    1.0

Every function takes `confidence` (float64 [n], the probability of being correct, in [0, 1]) and `correct` (bool [n]),
refuses NaN, values outside [0, 1] and arrays of different lengths with ValueError, and raises UndefinedMetricError
where the metric has no value. No function depends on the order of the rows.
"""

from dualread.evaluation.metrics.calibration_error import brier, calibration_in_the_large, calibration_slope, ece
from dualread.evaluation.metrics.correctness import accuracy
from dualread.evaluation.metrics.discrimination import auroc, within_question_auroc
from dualread.evaluation.metrics.grounding import (
    decisive,
    natural_ccg_auc,
    power,
    strict_ccg_auc,
    strict_decisive,
    vbr,
    vrs,
)
from dualread.evaluation.metrics.selective import aurc, coverage, hce, kept_risk, risks, threshold

__all__ = [
    "accuracy",
    "aurc",
    "auroc",
    "brier",
    "calibration_in_the_large",
    "calibration_slope",
    "coverage",
    "decisive",
    "ece",
    "hce",
    "kept_risk",
    "natural_ccg_auc",
    "power",
    "risks",
    "strict_ccg_auc",
    "strict_decisive",
    "threshold",
    "vbr",
    "vrs",
    "within_question_auroc",
]

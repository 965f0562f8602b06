"""Metrics of confidences, as pure functions of numpy arrays.

    >>> from dualread.evaluation.metrics import auroc, natural_ccg_auc
    >>> auroc([0.9, 0.8, 0.3], [True, False, False])
    1.0

`confidence` is [n], the probability in [0, 1] that an answer is correct: a list, an array, a column of a data frame or
a tensor. Metrics compute in float64; a float32 or bfloat16 .9 counts as .9 and not as 0.89999998 (see
`dualread.evaluation.decimals`).
`correct` is bool [n], or integers that are 0 or 1. Every function raises ValueError for NaN, missing and masked values,
values outside [0, 1] and arrays of different lengths. Where a metric has no value, it raises UndefinedMetricError and
returns no number. The order of the rows has no influence.
"""

from dualread.evaluation.metrics.calibration_chance import ece_noise_floor, squared_calibration_error
from dualread.evaluation.metrics.calibration_error import (
    bins,
    brier,
    brier_parts,
    calibration_in_the_large,
    calibration_slope,
    ece,
    ece_equal_mass,
    equal_mass_bins,
    log_loss,
)
from dualread.evaluation.metrics.discrimination import (
    accuracy,
    aupr_errors,
    auroc,
    fpr_at_95_tpr,
    within_question_auroc,
)
from dualread.evaluation.metrics.grounding import (
    Power,
    decisive,
    natural_ccg_auc,
    power,
    strict_ccg_auc,
    strict_decisive,
    vbr,
    vrs,
)
from dualread.evaluation.metrics.risk_control import certified_threshold, risk_p_values
from dualread.evaluation.metrics.selective import (
    auarc,
    aurc,
    coverage,
    e_aurc,
    hce,
    kept_risk,
    prediction_rejection_ratio,
    risks,
    threshold,
)

__all__ = [
    "Power",
    "accuracy",
    "auarc",
    "aupr_errors",
    "aurc",
    "auroc",
    "bins",
    "brier",
    "brier_parts",
    "calibration_in_the_large",
    "calibration_slope",
    "certified_threshold",
    "coverage",
    "decisive",
    "e_aurc",
    "ece",
    "ece_equal_mass",
    "ece_noise_floor",
    "equal_mass_bins",
    "fpr_at_95_tpr",
    "hce",
    "kept_risk",
    "log_loss",
    "natural_ccg_auc",
    "power",
    "prediction_rejection_ratio",
    "risk_p_values",
    "risks",
    "squared_calibration_error",
    "strict_ccg_auc",
    "strict_decisive",
    "threshold",
    "vbr",
    "vrs",
    "within_question_auroc",
]

"""Calibration of the branches: are their confidences too high or too extreme, before and after fusion?

Not in the paper. PSR's classes are weighted, which shifts its log-odds by a constant that a temperature cannot undo; it
shows as calibration-in-the-large. In distribution, and the equal-weight mean over OOD data sets.
"""

from dualread.evaluation.answer_metrics import CALIBRATION_IN_THE_LARGE, CALIBRATION_SLOPE
from dualread.reporting.tables._sheet import BACKBONES, METHODS, OOD, OUT_OF_DISTRIBUTION, SPREAD, Sheet, columns_of
from dualread.reporting.tables.entries import Gap

_METRICS = [CALIBRATION_SLOPE, CALIBRATION_IN_THE_LARGE]

build = Sheet(
    name="branches",
    rows=[BACKBONES._replace(gap=Gap.SPACE), METHODS],
    columns=lambda at: columns_of([at.layout.id_dataset, OOD], _METRICS),
    caption=lambda at: [
        f"Calibration of the branches, study {at.layout.study}.",
        "From a logistic regression of correctness on the log-odds of the confidence. Slope: 1 is calibrated; "
        "below 1, confidences are too extreme. In the large: the intercept with the slope fixed at 1; 0 is "
        "calibrated; below 0, confidences are too high.",
        f"{SPREAD}. {OUT_OF_DISTRIBUTION}",
    ],
    wide=False,
)

"""Sequence likelihood: the geometric mean of the answer tokens' probabilities (DualRead, app:baseline_protocols).

`answer_log_prob` is m, the mean log-probability in nats of the answer tokens A in the replay, so that exp(m) is the
geometric mean. The score is its log-odds, log(e^m / (1 - e^m)) = m - log(-expm1(m)), a form that stays exact near 1.
Only a temperature is fitted, on the calibration partition.

A float32 probability very close to 1 is rounded to 1. Where this happens to all tokens, m is 0 and the log-odds would
be infinite. m is therefore limited to log(1 - 2^-24), where 1 - 2^-24 is the largest float32 below 1, and log-odds to
16.6. (Limiting m to the float32 closest to 0 would allow log-odds of 103, and a few wrong answers with such values
would determine the temperature.)
"""

from collections.abc import Mapping

import numpy as np

from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import branch_scores, temperature_notes
from dualread.schema.base import Wire

FEATURES: tuple[str, ...] = ("answer_log_prob",)
FITTED_ON = "train"
SCORES_UNFITTED = True

LARGEST_LOG_PROB = float(np.log1p(-(2.0**-24)))


def fit(examples: Examples, settings: Wire, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the temperature on `calibration`."""
    calibration = examples.require("calibration", both_classes=True)
    return Weights(notes=temperature_notes(_log_odds(calibration.answers), calibration))


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the log-odds as score, the temperature-scaled probability as confidence."""
    return branch_scores(reader, _log_odds(answers))


def _log_odds(answers: Answers) -> np.ndarray:
    """Return the log-odds of exp(m), float64 [n]."""
    m = np.minimum(answers.features("answer_log_prob")[:, 0].astype(np.float64), LARGEST_LOG_PROB)
    return m - np.log(-np.expm1(m))

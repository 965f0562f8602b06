"""Sequence likelihood: the geometric mean of the answer tokens' probabilities (DualRead, app:baseline_protocols).

`answer_log_prob` is m, the mean log-probability in nats of the answer tokens A in the replay, so exp(m) is the
geometric mean. Score is its log-odds, log(e^m / (1 - e^m)) = m - log(-expm1(m)), which needs no probability close to 1.
A temperature from the calibration partition; nothing else is fitted.

Where every token is certain, m is 0 and the log-odds are infinite, although m is 0 only because a float32 probability
cannot come closer to 1. m is therefore at most log(1 - 2^-24), that of the largest such probability below 1: log-odds
end at 16.6. (At the least float32 below 0 they would be 103, and a few such mistakes would decide the temperature.)
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dualread.readers._calibrated import branch_scores, temperature_notes
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights, check_settings

FEATURES: tuple[str, ...] = ("answer_log_prob",)
PARENTS: tuple[str, ...] = ()
FITTED_ON = "train"
VIEWS = None

LARGEST_LOG_PROB = float(np.log1p(-(2.0**-24)))


def fit(examples: Examples, settings: Mapping[str, Any], parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the temperature on `calibration`."""
    check_settings(settings, (), module="readers.sequence_likelihood")
    calibration = examples.require("calibration", both_classes=True)
    return Weights(notes=temperature_notes(_log_odds(calibration.answers), calibration))


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the log-odds as score, the temperature-scaled probability as confidence."""
    return branch_scores(reader, _log_odds(answers))


def _log_odds(answers: Answers) -> np.ndarray:
    """Return the log-odds of exp(m), float64 [n]."""
    m = np.minimum(answers.features("answer_log_prob")[:, 0].astype(np.float64), LARGEST_LOG_PROB)
    return m - np.log(-np.expm1(m))

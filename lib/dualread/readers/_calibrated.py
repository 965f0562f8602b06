"""The last step of every branch: its temperature, from the calibration partition alone."""

from typing import Any

import numpy as np

from dualread.readers.base import Examples, FittedReader, Scores, temperature
from dualread.readers.calibration.log_odds import sigmoid
from dualread.readers.calibration.temperature import fit_temperature


def temperature_notes(log_odds: np.ndarray, calibration: Examples) -> dict[str, Any]:
    """Fit the temperature of uncalibrated `log_odds` [n] of the calibration partition; the notes that record it."""
    found = fit_temperature(log_odds, calibration.correct)
    return {"temperature": found.value, "temperature_at_bound": found.at_bound}


def branch_scores(reader: FittedReader, log_odds: np.ndarray) -> Scores:
    """Return uncalibrated log-odds [n] as score and sigmoid(log-odds / T) as confidence (eq:branch_calibration)."""
    return scores_from_log_odds(log_odds, log_odds / temperature(reader))


def scores_from_log_odds(score: np.ndarray, log_odds: np.ndarray) -> Scores:
    """Return `score` with the confidence sigmoid(log_odds); nothing is imputed, a state always reads."""
    return Scores(score=score, confidence=sigmoid(log_odds), imputed=np.zeros(len(score), dtype=np.bool_))

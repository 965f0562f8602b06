"""The last step of a reader: from uncalibrated scores to confidences, by a temperature or a Platt map.

Temperatures are fitted on the calibration partition, Platt maps on the validation split, or on the calibration
partition where a reader is fitted on training answers.
"""

from typing import Any

import numpy as np

from dualread.readers.base import Examples, FittedReader, Scores, temperature
from dualread.readers.calibration.log_odds import CalibrationError, sigmoid
from dualread.readers.calibration.platt import Platt, fit_platt
from dualread.readers.calibration.temperature import fit_temperature


def temperature_notes(log_odds: np.ndarray, calibration: Examples) -> dict[str, Any]:
    """Fit the temperature of uncalibrated `log_odds` [n] of the calibration partition; return the notes about it."""
    temperature = fit_temperature(log_odds, calibration.correct)
    return {"temperature": temperature.value, "temperature_at_bound": temperature.at_bound}


def branch_scores(reader: FittedReader, log_odds: np.ndarray) -> Scores:
    """Return uncalibrated log-odds [n] as score and sigmoid(log-odds / T) as confidence (eq:branch_calibration)."""
    if not reader.weights.notes:
        return _uncalibrated(log_odds)
    return scores_from_log_odds(log_odds, log_odds / temperature(reader))


def scores_from_log_odds(score: np.ndarray, log_odds: np.ndarray) -> Scores:
    """Return `score` with the confidence sigmoid(log_odds); no value is imputed, because every answer has a state."""
    return _scores(score, sigmoid(log_odds))


def platt_notes(
    score: np.ndarray, answers: Examples, *, reader: str, advice: str, partition: str = "validation"
) -> dict[str, Any]:
    """Fit the Platt map of `score` [n] on the answers of one partition; return the notes about it.

    Where there is no finite map, a CalibrationError names the reader, the partition and its counts, and ends with
    `advice`, what to do, without a full stop.
    """
    try:
        platt = fit_platt(score, answers.correct)
    except CalibrationError as error:
        raise CalibrationError(
            f"{reader}, partition {partition!r}, {int(answers.correct.sum())} correct of {len(answers)} answers:"
            f" {error} {advice}."
        ) from error
    return {"platt_slope": platt.slope, "platt_intercept": platt.intercept, "platt_clipped": platt.clipped}


def platt_scores(reader: FittedReader, score: np.ndarray) -> Scores:
    """Return `score` [n] with the confidence that the reader's Platt map gives it; no value is imputed."""
    if not (notes := reader.weights.notes):
        return _uncalibrated(score)
    platt = Platt(slope=notes["platt_slope"], intercept=notes["platt_intercept"], clipped=notes["platt_clipped"])
    return _scores(score, platt.confidence(score))


def _uncalibrated(score: np.ndarray) -> Scores:
    """Return `score` of a reader that nothing was fitted for; its confidences are imputed."""
    return Scores(score=score, confidence=np.full(len(score), 0.5), imputed=np.ones(len(score), dtype=np.bool_))


def _scores(score: np.ndarray, confidence: np.ndarray) -> Scores:
    return Scores(score=score, confidence=confidence, imputed=np.zeros(len(score), dtype=np.bool_))

"""A linear probe of h_think: the final-layer state at the token that ends the thinking, before the answer is written.

It is of actors whose format of completions says what ends the thinking (`THINKING_ENDS` of the contract). An answer
whose thinking never ends has no such state: it is left out of fitting and counted, and its confidence is imputed. The
weights are fitted on the fit partition and the temperature on the calibration partition, as those of P-State.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dualread.errors import UnfittedError
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import branch_scores, temperature_notes
from dualread.readers.linear import fit_linear, linear_log_odds
from dualread.readers.settings import LinearSettings

FEATURES: tuple[str, ...] = ("h_think",)
FITTED_ON = "train"


class Settings(LinearSettings):
    """How the linear map is fitted."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the weights on `fit` and the temperature on `calibration`; the weights start from zero without a seed."""
    ended = np.flatnonzero(_has_ended(examples.answers.features("h_think")))
    read = Examples(answers=examples.answers.take(ended), correct=examples.correct[ended])
    n_endless = len(examples) - len(ended)
    try:
        fitted, calibration = (read.require(role, both_classes=True) for role in ("fit", "calibration"))
    except UnfittedError as error:
        raise UnfittedError(f"{n_endless} of {len(examples)} answers have no end of thinking; {error}") from error
    tensors = fit_linear(fitted.answers.features("h_think"), fitted.correct, np.zeros(len(fitted)), settings)
    log_odds = linear_log_odds(calibration.answers.features("h_think"), tensors)
    return Weights(tensors=tensors, notes={**temperature_notes(log_odds, calibration), "n_endless": n_endless})


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the uncalibrated log-odds as score and the temperature-scaled probability as confidence."""
    states = answers.features("h_think")
    ended = _has_ended(states)
    log_odds = linear_log_odds(np.where(ended[:, None], states, 0), reader.weights.tensors)
    return replace(branch_scores(reader, np.where(ended, log_odds, 0.0)), imputed=~ended)


def _has_ended(states: np.ndarray) -> np.ndarray:
    return np.asarray(~np.isnan(states).all(axis=1))

"""A linear probe of one of the replay's states; with the target semantic uncertainty, a semantic entropy probe (SEP).

A logistic regression (`linear` has the loss and the optimizer) on the fit partition learns correctness, or what the
parent `target` says (`labels`). A Platt map, fitted on the calibration partition by correctness, makes confidences.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import platt_notes, platt_scores
from dualread.readers.linear import fit_linear_probe, linear_log_odds
from dualread.readers.settings import LinearSettings

FEATURES: tuple[str, ...] = ("{state}",)
FITTED_ON = "train"


class Settings(LinearSettings):
    """Which state is read, and how the linear map is fitted."""

    state: Literal["h_pre", "h_close", "h_ans", "h_mid"] | Annotated[str, Field(pattern=r"^h_image_([1-9]|1\d|20)$")]
    """The state: at the last token of the prompt, at the end of the answer, the answer's mean, or of a middle layer; or
    `h_image_1`, `h_image_2`, ...: the mean over the tokens of one image, by its place among those of the question."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the weights on `fit` and the Platt map on `calibration`; the weights start from zero without a seed."""
    calibration = examples.require("calibration", both_classes=True)
    tensors = fit_linear_probe(examples, lambda answers: answers.features(settings.state), settings).tensors
    log_odds = linear_log_odds(calibration.answers.features(settings.state), tensors)
    how = {"reader": "readers.linear_probe", "advice": "Read another state, or learn another target"}
    return Weights(tensors=tensors, notes=platt_notes(log_odds, calibration, **how, partition="calibration"))


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the uncalibrated log-odds as score and their Platt map as confidence."""
    return platt_scores(reader, linear_log_odds(answers.features(reader.settings.state), reader.weights.tensors))

"""P-Visual: answer-conditioned visual evidence on top of P-State; together the post-answer evidence read, PER.

A linear proxy on phi = [h_global; h_evid; h_ans * h_evid; |h_ans - h_evid|] (DualRead, eq:visual_block), fitted as a
residual to the frozen, uncalibrated P-State log-odds: l_post = l_state + f_visual(phi) (eq:post_logit). The temperature
of l_post is fitted on the calibration partition. The replay pools h_evid with the kappa that its header records.
"""

from collections.abc import Mapping

import numpy as np

from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights, log_odds
from dualread.readers.calibrated import branch_scores, temperature_notes
from dualread.readers.linear import fit_linear, linear_log_odds
from dualread.readers.settings import LinearSettings

FEATURES: tuple[str, ...] = ("h_ans", "h_global", "h_evid")
PARENTS: tuple[str, ...] = ("state",)
FITTED_ON = "train"


class Settings(LinearSettings):
    """How the linear map is fitted."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the residual on `fit` and the temperature on `calibration`; the weights start from zero without a seed."""
    fitted = examples.require("fit", both_classes=True)
    calibration = examples.require("calibration", both_classes=True)
    state = log_odds(parents["state"], fitted.answers)
    tensors = fit_linear(visual_block(fitted.answers), fitted.correct, state, settings)
    post = log_odds(parents["state"], calibration.answers) + linear_log_odds(visual_block(calibration.answers), tensors)
    return Weights(tensors=tensors, notes=temperature_notes(post, calibration))


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the uncalibrated log-odds l_post as score and the temperature-scaled probability as confidence."""
    residual = linear_log_odds(visual_block(answers), reader.weights.tensors)
    return branch_scores(reader, log_odds(reader.parents["state"], answers) + residual)


def visual_block(answers: Answers) -> np.ndarray:
    """Return phi, float64 [n, 4 D]."""
    answer, image, evidence = (answers.features(name).astype(np.float64) for name in FEATURES)
    return np.concatenate([image, evidence, answer * evidence, np.abs(answer - evidence)], axis=1)

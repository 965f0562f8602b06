"""P-State: answer commitment state (DualRead, sec:post_read), the first part of the post-answer evidence read.

A linear proxy on h_close, the final-layer state at the token that closes the answer. The weights are fitted on the fit
partition and the temperature on the calibration partition. `linear` has the loss and the optimizer.
"""

from collections.abc import Mapping

from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import branch_scores
from dualread.readers.linear import fit_linear_probe, linear_log_odds
from dualread.readers.settings import LinearSettings

FEATURES: tuple[str, ...] = ("h_close",)
FITTED_ON = "train"


class Settings(LinearSettings):
    """How the linear map is fitted."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the weights on `fit` and the temperature on `calibration`; the weights start from zero without a seed."""
    return fit_linear_probe(examples, lambda answers: answers.features("h_close"), settings)


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the uncalibrated log-odds l_state as score and the temperature-scaled probability as confidence."""
    return branch_scores(reader, linear_log_odds(answers.features("h_close"), reader.weights.tensors))

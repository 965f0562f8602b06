"""A linear probe of one layer: the mean of the answer tokens' states at any depth of the model.

Its view gives the states (`layers` of the view). The weights are fitted on the fit partition and the temperature on the
calibration partition, as those of P-State (`linear` has the loss and the optimizer).
"""

from collections.abc import Mapping

import numpy as np

from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import branch_scores
from dualread.readers.linear import fit_linear_probe, linear_log_odds
from dualread.readers.settings import LinearSettings
from dualread.schema.base import Share

FITTED_ON = "train"
VIEWS = "score"


class Settings(LinearSettings):
    """Which layer is read, and how the linear map is fitted."""

    layer: Share
    """The depth of the layer, from 0 to 1; one of the `layers` of the view."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the weights on `fit` and the temperature on `calibration`; the weights start from zero without a seed."""
    return fit_linear_probe(examples, lambda answers: _states(answers, settings), settings)


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the uncalibrated log-odds as score, the temperature-scaled probability as confidence."""
    return branch_scores(reader, linear_log_odds(_states(answers, reader.settings), reader.weights.tensors))


def _states(answers: Answers, settings: Settings) -> np.ndarray:
    return answers.only_view().features(f"h_ans_at_{settings.layer:g}")

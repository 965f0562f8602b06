"""PSR: pre-answer solvability read (DualRead, sec:pre_read).

Will the actor answer this question about this image correctly? An MLP predicts this from h_pre, the final-layer
state at the last non-padding prompt token. AdamW (betas 0.9 and 0.999) minimizes the class-weighted binary
cross-entropy with pos_weight = n_wrong / n_correct of the fit partition. Early stopping watches the same loss. The
temperature is fitted on the calibration partition. `_network` has the training loop and what the paper leaves open.
"""

from collections.abc import Mapping

from dualread.readers._network import fit_probe, probe_log_odds
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import branch_scores
from dualread.readers.settings import NetworkSettings

FEATURES: tuple[str, ...] = ("h_pre",)
FITTED_ON = "train"


class Settings(NetworkSettings):
    """How the network is trained."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Train on `fit`, choose the epoch on `stop`, and fit the temperature on `calibration`."""
    return fit_probe(examples, "h_pre", settings, seed)


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the uncalibrated log-odds as score, the temperature-scaled probability as confidence."""
    return branch_scores(reader, probe_log_odds(reader.weights.tensors, answers.features("h_pre")))

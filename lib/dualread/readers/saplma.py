"""SAPLMA: a mid-layer statement probe (DualRead, app:baseline_protocols).

A 256-128-64 ReLU network on h_mid, the state at 0.625 of the model's depth, at the last token of the replayed
completion. The paper fixes the layer and the widths. Training, early stopping and the temperature are as for PSR.
"""

from collections.abc import Mapping

from dualread.readers._network import fit_probe, probe_log_odds
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import branch_scores
from dualread.readers.settings import NetworkSettings

FEATURES: tuple[str, ...] = ("h_mid",)
FITTED_ON = "train"


class Settings(NetworkSettings):
    """How the network is trained."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Train on `fit`, choose the epoch on `stop`, and fit the temperature on `calibration`."""
    return fit_probe(examples, "h_mid", settings, seed)


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the uncalibrated log-odds as score, the temperature-scaled probability as confidence."""
    return branch_scores(reader, probe_log_odds(reader.weights.tensors, answers.features("h_mid")))

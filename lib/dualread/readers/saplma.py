"""SAPLMA: a mid-layer statement probe (DualRead, app:baseline_protocols).

A 256-128-64 ReLU network on h_mid, the state at 0.625 of the model's depth at the replayed completion's last token. The
paper fixes the layer and the widths; otherwise it is trained and stopped like PSR, with a temperature of its own.
"""

from collections.abc import Mapping
from typing import Any

from dualread import plugins
from dualread.readers._calibrated import branch_scores
from dualread.readers._mlp import fit_probe, probe_log_odds
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights, check_settings

FEATURES: tuple[str, ...] = ("h_mid",)
PARENTS: tuple[str, ...] = ()
FITTED_ON = "train"
VIEWS = None
SETTINGS_OF = "psr"


def fit(examples: Examples, settings: Mapping[str, Any], parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Train on `fit`, choose the epoch on `stop`, fit the temperature on `calibration`."""
    check_settings(settings, plugins.settings("readers", "saplma"), module="readers.saplma")
    return fit_probe(examples, "h_mid", settings, seed)


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the uncalibrated log-odds as score, the temperature-scaled probability as confidence."""
    return branch_scores(reader, probe_log_odds(reader.weights.tensors, answers.features("h_mid")))

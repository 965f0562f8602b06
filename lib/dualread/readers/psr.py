"""PSR: pre-answer solvability read (DualRead, sec:pre_read).

An MLP on h_pre, the final-layer state at the last non-padding prompt token: is this question, with this image, one that
the actor will answer correctly? Class-weighted binary cross-entropy with pos_weight = n_wrong / n_correct of the fit
partition, which early stopping watches too; AdamW (betas 0.9 and 0.999); the temperature from the calibration
partition. `_mlp` has the loop and what the paper leaves open.
"""

from collections.abc import Mapping
from typing import Any

from dualread.readers._calibrated import branch_scores
from dualread.readers._mlp import fit_probe, probe_log_odds
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights, check_settings

FEATURES: tuple[str, ...] = ("h_pre",)
PARENTS: tuple[str, ...] = ()
FITTED_ON = "train"
VIEWS = None
SETTINGS = {
    "hidden": {"type": "array", "items": {"type": "integer", "minimum": 1}},
    "learning_rate": {"type": "number", "exclusiveMinimum": 0},
    "weight_decay": {"type": "number", "minimum": 0},
    "batch_size": {"type": "integer", "minimum": 1},
    "max_epochs": {"type": "integer", "minimum": 1},
    "patience": {"type": "integer", "minimum": 1},
}


def fit(examples: Examples, settings: Mapping[str, Any], parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Train on `fit`, choose the epoch on `stop`, fit the temperature on `calibration`."""
    check_settings(settings, SETTINGS, module="readers.psr")
    return fit_probe(examples, "h_pre", settings, seed)


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the uncalibrated log-odds as score, the temperature-scaled probability as confidence."""
    return branch_scores(reader, probe_log_odds(reader.weights.tensors, answers.features("h_pre")))

"""DualRead: the equal-weight mean of the two branches' calibrated log-odds (eq:dualread_fusion). Nothing is fitted."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dualread.readers._calibrated import scores_from_log_odds
from dualread.readers._interface import (
    Answers,
    Examples,
    FittedReader,
    Scores,
    Weights,
    calibrated_log_odds,
    check_settings,
    temperature,
)

FEATURES: tuple[str, ...] = ()  # its parents' are enough
PARENTS: tuple[str, ...] = ("pre", "post")
FITTED_ON = None
VIEWS = None


def fit(examples: Examples, settings: Mapping[str, Any], parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit nothing; the weight 0.5 is frozen a priori. Refuse parents without log-odds already here."""
    check_settings(settings, (), module="readers.dualread")
    for role in PARENTS:
        temperature(parents[role])
    return Weights()


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the mean of the calibrated log-odds as score and its sigmoid as confidence."""
    branches = [calibrated_log_odds(reader.parents[role], answers) for role in PARENTS]
    fused = np.mean(branches, axis=0)
    return scores_from_log_odds(fused, fused)

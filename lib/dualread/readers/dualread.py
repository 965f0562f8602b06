"""DualRead: the equal-weight mean of the two branches' calibrated log-odds (eq:dualread_fusion). Nothing is fitted."""

from collections.abc import Mapping
from typing import Any

from dualread.readers._calibrated import scores_from_log_odds
from dualread.readers.base import (
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

WEIGHT = 0.5  # of the branch before the answer; frozen a priori


def fit(examples: Examples, settings: Mapping[str, Any], parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit nothing. Refuse parents without log-odds already here."""
    check_settings(settings, (), module="readers.dualread")
    for role in PARENTS:
        temperature(parents[role])
    return Weights()


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the mean of the calibrated log-odds as score and its sigmoid as confidence."""
    pre, post = (calibrated_log_odds(reader.parents[role], answers) for role in PARENTS)
    fused = WEIGHT * pre + (1 - WEIGHT) * post
    return scores_from_log_odds(fused, fused)

"""Base: the confidence that the untrained actor's own distribution expects (DualRead, app:baseline_protocols).

The view has the log-probability of each integer 0 to 100 at the confidence span, its end included. Confidence is
sum n p_n / 100 with p normalized over the 101 integers, the valid vocabulary. Raw: nothing is fitted.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dualread.readers._choices import choice_log_probs
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights, check_settings

FEATURES: tuple[str, ...] = ()
PARENTS: tuple[str, ...] = ()
FITTED_ON = None
VIEWS = "score"

PERCENTS = np.arange(101)


def fit(examples: Examples, settings: Mapping[str, Any], parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit nothing."""
    check_settings(settings, (), module="readers.expected_confidence")
    return Weights()


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the expectation as score and as confidence."""
    log_probs = choice_log_probs(answers, [str(percent) for percent in PERCENTS])
    weight = np.exp(log_probs - log_probs.max(axis=1, keepdims=True))
    # One division, as in the mean of stated integers: 5, 7 and 8 alike give the float 1/15, which opens a bin.
    expected = (weight * PERCENTS).sum(axis=1) / (100 * weight.sum(axis=1))
    confidence = np.minimum(expected, 1.0)  # rounding alone can exceed 1
    return Scores(score=confidence, confidence=confidence, imputed=np.zeros(len(answers), dtype=np.bool_))

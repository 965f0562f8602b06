"""Base: the expectation of the stated confidence under the untrained actor (DualRead, app:baseline_protocols).

The view has the log-probability of each integer from 0 to 100 in the confidence span, including the end of the span.
The confidence is sum n p_n / 100, with p normalized over these 101 integers. Nothing is fitted.
"""

import numpy as np

from dualread.readers.base import Answers, FittedReader, Scores
from dualread.readers.replies import choice_log_probs

VIEWS = "score"

PERCENTS = np.arange(101)


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the expectation, divided by 100, as score and as confidence."""
    log_probs = choice_log_probs(answers, [str(percent) for percent in PERCENTS])
    weight = np.exp(log_probs - log_probs.max(axis=1, keepdims=True))
    # A single division keeps bin edges exact: with equal weights, 5, 7 and 8 give the float 1/15.
    expected = (weight * PERCENTS).sum(axis=1) / (100 * weight.sum(axis=1))
    confidence = np.minimum(expected, 1.0)  # rounding can give slightly more than 1
    return Scores(score=confidence, confidence=confidence, imputed=np.zeros(len(answers), dtype=np.bool_))

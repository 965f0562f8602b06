"""Prompt ensemble: self-probing in several fixed paraphrases (DualRead, app:baseline_protocols).

One view per paraphrase; the first is self-probing's own. Confidence is the mean of the valid statements: their integers
are added and the sum is divided once, so that equal means are equal floats. An answer without a valid statement is
retained at 0.5 and marked. Raw: nothing is fitted.
"""

from collections.abc import Mapping
from typing import Any

from dualread.readers._stated import mean_stated
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights, check_settings

FEATURES: tuple[str, ...] = ()
PARENTS: tuple[str, ...] = ()
FITTED_ON = None
VIEWS = "score"


def fit(examples: Examples, settings: Mapping[str, Any], parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit nothing."""
    check_settings(settings, (), module="readers.prompt_ensemble")
    return Weights()


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the mean of the stated percentages, divided by 100, as score and as confidence."""
    return mean_stated(answers.views)

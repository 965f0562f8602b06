"""The confidence that the actor states itself; 0.5 stands in where it states none validly, and is marked."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights, check_settings

FEATURES: tuple[str, ...] = ()
PARENTS: tuple[str, ...] = ()
FITTED_ON = None
VIEWS = None

# The paper's invalid-confidence policy: retain the row, assign 0.5, report the rate.
IMPUTED_CONFIDENCE = 0.5


def fit(examples: Examples, settings: Mapping[str, Any], parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit nothing."""
    check_settings(settings, (), module="readers.verbalized")
    return Weights()


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the stated confidence as score and as confidence."""
    stated = answers.table["verbalized_confidence"]
    confidence = stated.fill_null(IMPUTED_CONFIDENCE).to_numpy().astype(np.float64)
    return Scores(score=confidence, confidence=confidence, imputed=stated.is_null().to_numpy())

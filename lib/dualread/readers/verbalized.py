"""The confidence that the actor states itself. Without a valid statement it is 0.5 and marked as imputed."""

import numpy as np

from dualread.readers.base import Answers, FittedReader, Scores

# The paper's policy for an invalid confidence: keep the row, assign 0.5, and report how often this happens.
IMPUTED_CONFIDENCE = 0.5


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the stated confidence as score and as confidence."""
    stated = answers.table["verbalized_confidence"]
    confidence = stated.fill_null(IMPUTED_CONFIDENCE).to_numpy().astype(np.float64)
    return Scores(score=confidence, confidence=confidence, imputed=stated.is_null().to_numpy())

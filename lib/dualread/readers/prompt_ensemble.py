"""Prompt ensemble: self-probing in several fixed paraphrases (DualRead, app:baseline_protocols).

There is one view per paraphrase; the first is the one that self-probing reads. The confidence is the mean of the valid
statements. Their integers are added and the sum is divided once, so that equal means are equal floats. An answer
without a valid statement keeps the confidence 0.5 and is marked as imputed. Nothing is fitted.
"""

from dualread.readers.base import Answers, FittedReader, Scores
from dualread.readers.replies import mean_stated

VIEWS = "score"


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the mean of the stated percentages, divided by 100, as score and as confidence."""
    return mean_stated(answers.views)

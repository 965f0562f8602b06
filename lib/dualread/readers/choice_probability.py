"""Choice probability: the largest probability that the actor gives one of a question's choices in place of its answer.

It is the maximum softmax probability of Hendrycks and Gimpel, A Baseline for Detecting Misclassified and Out-of-
Distribution Examples, 2017, over the options of a multiple-choice question, or yes and no of a closed one (a view with
`choices: {options: true}`). Nothing is fitted. A question without choices keeps .5 and is marked as imputed. Metrics of
answer sets (`metrics.miss_percent`) read the same probabilities.
"""

import numpy as np

from dualread.readers.base import Answers, FittedReader, Scores
from dualread.readers.replies import choice_probabilities

VIEWS = "score"


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the largest probability as score and as confidence."""
    largest = np.fmax.reduce(choice_probabilities(answers.only_view().choices(), len(answers)), axis=1)
    confidence = np.where(np.isnan(largest), 0.5, largest)
    return Scores(score=confidence, confidence=confidence, imputed=np.isnan(largest))

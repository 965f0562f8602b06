"""Self-probing: the probability that the actor states when asked about its answer (DualRead, app:baseline_protocols).

The actor sees the image, the question and its answer again and is asked for one integer from 0 to 100. The reply is
decoded greedily and read by `grading.answers`. An answer with an invalid reply keeps the confidence 0.5
and is marked as imputed. Nothing is fitted.
"""

from dualread.readers.base import Answers, FittedReader, Scores
from dualread.readers.replies import mean_stated

VIEWS = "score"


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the stated percentage, divided by 100, as score and as confidence."""
    return mean_stated([answers.only_view()])

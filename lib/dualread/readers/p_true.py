"""P(True): the actor's own one-word judgment of its answer (DualRead, app:baseline_protocols).

The actor sees the image, the question and its answer again and is asked for Yes or No. The confidence is
P(Yes) / (P(Yes) + P(No)) at the first token. The view has the log-probability of each word, summed over all spellings
that are a single token; their difference is the log-odds. Nothing is fitted. An invalid answer cannot be shown to the
actor: it keeps the confidence 0.5 and is marked as imputed.
"""

import numpy as np

from dualread.readers.base import Answers, FittedReader, Scores
from dualread.readers.calibration.log_odds import sigmoid
from dualread.readers.replies import choice_log_probs

VIEWS = "score"


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return log P(Yes) - log P(No) as score and its sigmoid as confidence; 0 and 0.5 for an invalid answer."""
    yes, no = choice_log_probs(answers, ("Yes", "No")).T
    is_asked = ~np.isnan(yes)
    log_odds = np.where(is_asked, yes - no, 0.0)
    return Scores(score=log_odds, confidence=sigmoid(log_odds), imputed=~is_asked)

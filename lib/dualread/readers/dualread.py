"""DualRead: the equal-weight mean of the two branches' calibrated log-odds (eq:dualread_fusion). Nothing is fitted.

FEATURES is left out, because the parents read all the states.
"""

from dualread.readers.base import Answers, FittedReader, Scores, calibrated_log_odds
from dualread.readers.calibrated import scores_from_log_odds

PARENTS: tuple[str, ...] = ("pre", "post")

WEIGHT = 0.5  # of the branch before the answer; the paper fixes it in advance


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the mean of the calibrated log-odds as score and its sigmoid as confidence."""
    pre, post = (calibrated_log_odds(reader.parents[role], answers) for role in PARENTS)
    fused = WEIGHT * pre + (1 - WEIGHT) * post
    return scores_from_log_odds(fused, fused)

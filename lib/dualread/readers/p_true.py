"""P(True): the actor's own one-word judgment of its answer (DualRead, app:baseline_protocols).

The actor sees the image, the question and its answer again and is asked for Yes or No; confidence is
P(Yes) / (P(Yes) + P(No)) at the first token. The view has the two log-probabilities, each already summed over the ways
to write the word in one token. Their difference is the log-odds. Raw: no temperature, nothing is fitted. An answer that
is not valid cannot be shown; it is retained at 0.5 and marked.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dualread.readers._choices import choice_log_probs
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights, check_settings
from dualread.readers.calibration.log_odds import sigmoid

FEATURES: tuple[str, ...] = ()
PARENTS: tuple[str, ...] = ()
FITTED_ON = None
VIEWS = "score"


def fit(examples: Examples, settings: Mapping[str, Any], parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit nothing."""
    check_settings(settings, (), module="readers.p_true")
    return Weights()


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return log P(Yes) - log P(No) as score and its sigmoid as confidence; 0 and 0.5 where no answer was shown."""
    yes, no = choice_log_probs(answers, ("Yes", "No")).T
    is_asked = ~np.isnan(yes)
    log_odds = np.where(is_asked, yes - no, 0.0)
    return Scores(score=log_odds, confidence=sigmoid(log_odds), imputed=~is_asked)

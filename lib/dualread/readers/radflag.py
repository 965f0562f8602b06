"""RadFlag: the share of K samples that say what the committed answer says; nothing is fitted.

Samples are drawn at a high temperature, and those with the committed answer's canonical form, or, with a view of
`groups`, its meaning, agree with it. An invalid sample disagrees with every answer, and an invalid committed answer
agrees with no sample. The share is score and confidence; RadFlag itself flags answers below a threshold of it.

References:
    Zhang et al., RadFlag: A Black-Box Hallucination Detection Method for Medical Vision Language Models, 2024, which
    judges agreement by a language model.
"""

import numpy as np

from dualread.readers.base import Answers, FittedReader, Scores
from dualread.readers.groups import agreement
from dualread.schema.base import Positive, Section

VIEWS = "score"
GROUPS = True


class Settings(Section):
    """How many samples are read."""

    k: Positive
    """Samples per question."""


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the share of agreeing samples as score and as confidence."""
    share = agreement(answers, reader.settings.k)
    return Scores(score=share, confidence=share, imputed=np.zeros(len(answers), dtype=np.bool_))

"""RadFlag: the share of K samples that say what the committed answer says; nothing is fitted.

Samples are drawn at a high temperature, and those with the committed answer's canonical form agree with it. An invalid
sample disagrees with every answer, and an invalid committed answer agrees with no sample. The share is score and
confidence; RadFlag itself flags answers below a threshold of it.

References:
    Zhang et al., RadFlag: A Black-Box Hallucination Detection Method for Medical Vision Language Models, 2024, which
    judges agreement by a language model.
"""

import numpy as np

from dualread.readers.base import Answers, FittedReader, Scores
from dualread.readers.replies import sampled_answers
from dualread.schema.base import Positive, Section

VIEWS = "score"


class Settings(Section):
    """How many samples are read."""

    k: Positive
    """Samples per question."""


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the share of agreeing samples as score and as confidence."""
    k = reader.settings.k
    pairs = zip(answers.table["canonical_answer"].to_list(), sampled_answers(answers, k), strict=True)
    share = np.array([0 if text is None else samples.count(text) for text, samples in pairs], dtype=np.float64) / k
    return Scores(score=share, confidence=share, imputed=np.zeros(len(answers), dtype=np.bool_))

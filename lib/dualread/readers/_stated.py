"""Percentages that the actor states when it is asked about its answer: self-probing and the prompt ensemble."""

from collections.abc import Sequence

import numpy as np

from dualread.errors import ConfigError
from dualread.grading.parse import stated_percent
from dualread.readers.base import Scores, View
from dualread.readers.verbalized import IMPUTED_CONFIDENCE


def mean_stated(views: Sequence[View]) -> Scores:
    """Return the mean of the valid statements as score and as confidence; 0.5, imputed, where no view has one.

    The stated integers are added and their sum is divided once. A mean of probabilities would round: 80 and 90 would
    give more than 85 and 85, and 85 and 95 less than 0.9.

    Raises:
        ConfigError: There is no view, or one that has several replies to an answer.
    """
    if not views:
        raise ConfigError("views: none; this reader needs at least one. Correct the method's config entry.")
    of_answers = zip(*(_stated(view) for view in views), strict=True)
    valid = [[percent for percent in percents if percent is not None] for percents in of_answers]
    means = [sum(percents) / (100 * len(percents)) if percents else IMPUTED_CONFIDENCE for percents in valid]
    confidence = np.array(means, dtype=np.float64)
    return Scores(score=confidence, confidence=confidence, imputed=np.array([not percents for percents in valid], bool))


def _stated(view: View) -> list[int | None]:
    """Return the stated percentages [n]; None where a reply states none, or an answer was not asked about."""
    replies = view.completions()
    if strange := [len(texts) for texts in replies if len(texts) > 1]:
        raise ConfigError(
            f"views.{view.name}: {strange[0]} replies to one answer, expected 1. Ask greedily, for one completion."
        )
    return [stated_percent(texts[0]) if texts else None for texts in replies]

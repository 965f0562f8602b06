"""Probabilities that the actor states when it is asked about its answer: self-probing and the prompt ensemble."""

from collections.abc import Sequence

import numpy as np

from dualread.errors import ConfigError
from dualread.grading.parse import stated_probability
from dualread.readers._interface import Scores, View
from dualread.readers.verbalized import IMPUTED_CONFIDENCE


def mean_stated(views: Sequence[View]) -> Scores:
    """Return the mean of the valid statements as score and as confidence; 0.5, imputed, where no view has one.

    Raises:
        ConfigError: There is no view, or one that has several replies to an answer.
    """
    if not views:
        raise ConfigError("views: none; this reader needs at least one. Correct the method's config entry.")
    stated = np.stack([_stated(view) for view in views], axis=1)
    valid = ~np.isnan(stated)
    n_valid = valid.sum(axis=1)
    mean = np.where(valid, stated, 0.0).sum(axis=1) / np.maximum(n_valid, 1)
    confidence = np.where(n_valid == 0, IMPUTED_CONFIDENCE, mean)
    return Scores(score=confidence, confidence=confidence, imputed=n_valid == 0)


def _stated(view: View) -> np.ndarray:
    """Return the stated probabilities, float64 [n]; NaN where a reply states none, or an answer was not asked about."""
    replies = view.completions()
    if strange := [len(texts) for texts in replies if len(texts) > 1]:
        raise ConfigError(
            f"views.{view.name}: {strange[0]} replies to one answer, expected 1. Ask greedily, for one completion."
        )
    values = [stated_probability(texts[0]) if texts else None for texts in replies]
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)

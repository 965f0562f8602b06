"""Isotonic regression on any method: the monotone map of its score that fits validation answers best.

Between two fitted scores the map is linear, and beyond the last ones it is constant. Answers whose scores it does not
tell apart get one confidence, so that ranks become ties.

References:
    Zadrozny and Elkan, Transforming Classifier Scores into Accurate Multiclass Probability Estimates, 2002.
"""

from collections.abc import Mapping

import numpy as np

from dualread.readers._post_hoc import mapped, validation_scores
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.schema.base import Section

FITTED_ON = "validation"
PARENTS: tuple[str, ...] = ("of",)


def fit(examples: Examples, settings: Section, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the map on `validation`."""
    from sklearn.isotonic import IsotonicRegression  # slow to load, and a fitted map does not need it

    scores, correct = validation_scores(examples, parents)
    model = IsotonicRegression(y_min=0.0, y_max=1.0, increasing=True, out_of_bounds="clip")
    model.fit(scores["of"].score, correct.astype(np.float64))
    return Weights(
        tensors={
            "scores": np.asarray(model.X_thresholds_, np.float64),
            "confidences": np.asarray(model.y_thresholds_, np.float64),
        }
    )


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the map of the method's score as score and as confidence."""
    weights = reader.weights.tensors
    return mapped(reader, answers, lambda raw: np.interp(raw["of"].score, weights["scores"], weights["confidences"]))

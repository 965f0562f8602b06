"""HAC, hallucination-aware calibration: a confidence that is lowered where a hallucination score is high.

It builds on two methods: `confidence`, whose confidence c it lowers, and `hallucination`, whose score is a certainty
such as VASE's, so that its negative h is high for hallucinations. The map is fitted on validation answers by its
cross-entropy. It has one of two forms:

    regression    sigmoid(a logit(c) + b h + d)  with a >= 0 and b <= 0
    gate          c sigmoid(b h + d)             with b <= 0

h is standardized on the validation answers. The search is bounded at +-20 for each coefficient, which `at_bound` notes.

References:
    HAC of the package medvlm.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from dualread.readers._post_hoc import log_odds_of, mapped, validation_scores
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibration.log_odds import sigmoid
from dualread.schema.base import Section

FITTED_ON = "validation"
PARENTS: tuple[str, ...] = ("confidence", "hallucination")

_LARGEST = 20.0
_LEAST = 1e-12  # a probability of 0 would have no logarithm


class Settings(Section):
    """The form of the map."""

    form: Literal["regression", "gate"]
    """See the first lines of this file."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the map on `validation`."""
    from scipy.optimize import minimize

    scores, correct = validation_scores(examples, parents)
    h = -scores["hallucination"].score
    mean, scale = float(h.mean()), float(h.std()) or 1.0
    notes = {"form": settings.form, "mean": mean, "scale": scale}

    def loss(values: np.ndarray) -> float:
        p = np.clip(_confidence(notes | dict(zip("abd", map(float, values), strict=True)), scores), _LEAST, 1 - _LEAST)
        return -float(np.mean(np.log(np.where(correct, p, 1 - p))))

    free = settings.form == "regression"
    bounds = [(0.0, _LARGEST) if free else (1.0, 1.0), (-_LARGEST, 0.0), (-_LARGEST, _LARGEST)]
    best = minimize(loss, [1.0, -0.1, 0.0], bounds=bounds, method="L-BFGS-B", options={"maxiter": 1000, "ftol": 1e-14})
    a, b, d = (float(value) for value in best.x)
    at_bound = _LARGEST in (a, -b, abs(d))
    return Weights(notes=notes | {"a": a, "b": b, "d": d, "at_bound": at_bound})


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the lowered confidence as score and as confidence."""
    return mapped(reader, answers, lambda scores: _confidence(reader.weights.notes, scores))


def _confidence(notes: Mapping[str, float | str], scores: Mapping[str, Scores]) -> np.ndarray:
    a, b, d, mean, scale = (float(notes[name]) for name in ("a", "b", "d", "mean", "scale"))
    lowering = b * (-scores["hallucination"].score - mean) / scale + d
    if notes["form"] == "gate":
        return scores["confidence"].confidence * sigmoid(lowering)
    return sigmoid(a * log_odds_of(scores["confidence"]) + lowering)

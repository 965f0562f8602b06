"""A null: how often the actor was right on this question in the fit partition, whatever the image.

This method is not in the paper. The confidence is the smoothed accuracy of a normalized question,
p(q) = (correct(q) + m p) / (n(q) + m), with m = `pseudo_counts` and p the accuracy of the partition. An unseen question
gets p. The method sees no image: swapping the image does not change its confidence, and its CCG is exactly 0.5.

Fractions are exact until the end, so that equal accuracies are equal floats. A question with the partition's accuracy
gets the confidence of an unseen one, whatever its n.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.settings import PriorSettings

FITTED_ON = "train"
NULL = True


class Settings(PriorSettings):
    """How accuracies are smoothed."""


def fit(examples: Examples, settings: PriorSettings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Count the answers of the fit partition; no temperature is fitted."""
    overall, prior = question_priors(examples, settings.pseudo_counts)
    return Weights(
        tensors={"question_confidence": np.array([prior[key] for key in sorted(prior)], dtype=np.float64)},
        notes={"questions": sorted(prior), "whole": float(overall)},
    )


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the question's smoothed accuracy, or else the partition's, as score and as confidence."""
    notes, tensors = reader.weights.notes, reader.weights.tensors
    table = dict(zip(notes["questions"], tensors["question_confidence"].tolist(), strict=True))
    keys = answers.table["question_key"].to_list()
    confidence = np.array([table.get(key, notes["whole"]) for key in keys], dtype=np.float64)
    return Scores(score=confidence, confidence=confidence, imputed=np.zeros(len(keys), dtype=np.bool_))


def question_priors(examples: Examples, pseudo_counts: float) -> tuple[Fraction, dict[str, Fraction]]:
    """Return the accuracy of the fit partition, and the smoothed accuracy of each of its questions by key."""
    fitted = examples.require("fit", both_classes=False)
    overall = Fraction(int(fitted.correct.sum()), len(fitted))
    return overall, smoothed(fitted.answers.table["question_key"].to_list(), fitted.correct, {}, overall, pseudo_counts)


def smoothed(
    keys: list[Any], correct: np.ndarray, back_off: Mapping[Any, Fraction], overall: Fraction, pseudo_counts: float
) -> dict[Any, Fraction]:
    """Return {key: (correct + m b) / (n + m)} with b = `back_off[key]`, or `overall` without one."""
    counts: dict[Any, list[int]] = {}
    for key, is_correct in zip(keys, correct.tolist(), strict=True):
        count = counts.setdefault(key, [0, 0])
        count[0] += is_correct
        count[1] += 1
    m = Fraction(pseudo_counts)
    return {key: (k + m * back_off.get(key, overall)) / (n + m) for key, (k, n) in counts.items()}

"""A null: how often the actor was right on this question in the fit partition, whatever the image.

Not in the paper. The accuracy of a normalized question, with `pseudo_counts` pseudo-answers of the whole partition's
accuracy: p(q) = (correct(q) + m p) / (n(q) + m). An unseen question has p. It sees no image, so an image swap leaves it
where it is and its CCG is exactly 0.5.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dualread.readers._interface import Answers, Examples, FittedReader, Scores, Weights, check_settings

FEATURES: tuple[str, ...] = ()
PARENTS: tuple[str, ...] = ()
FITTED_ON = "train"
VIEWS = None
SETTINGS = {"pseudo_counts": {"type": "number", "minimum": 0}}


def fit(examples: Examples, settings: Mapping[str, Any], parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Count the fit partition; raw, without a temperature."""
    check_settings(settings, SETTINGS, module="readers.question_prior")
    fitted = examples.require("fit", both_classes=False)
    whole = float(np.mean(fitted.correct))
    keys = fitted.answers.table["question_key"].to_list()
    prior = smoothed(keys, fitted.correct, {}, whole, settings["pseudo_counts"])
    return Weights(
        tensors={"question_confidence": np.array([prior[key] for key in sorted(prior)], dtype=np.float64)},
        notes={"questions": sorted(prior), "whole": whole},
    )


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Look the question up; score and confidence are the smoothed accuracy."""
    notes, tensors = reader.weights.notes, reader.weights.tensors
    table = dict(zip(notes["questions"], tensors["question_confidence"].tolist(), strict=True))
    keys = answers.table["question_key"].to_list()
    confidence = np.array([table.get(key, notes["whole"]) for key in keys], dtype=np.float64)
    return Scores(score=confidence, confidence=confidence, imputed=np.zeros(len(keys), dtype=np.bool_))


def smoothed(
    keys: list[Any], correct: np.ndarray, back_off: Mapping[Any, float], whole: float, pseudo_counts: float
) -> dict[Any, float]:
    """Return {key: (correct + m b) / (n + m)} with b = `back_off[key]`, or `whole` where there is none."""
    counts: dict[Any, list[int]] = {}
    for key, is_correct in zip(keys, correct.tolist(), strict=True):
        count = counts.setdefault(key, [0, 0])
        count[0] += is_correct
        count[1] += 1
    m = pseudo_counts
    return {key: (k + m * back_off.get(key, whole)) / (n + m) for key, (k, n) in counts.items()}

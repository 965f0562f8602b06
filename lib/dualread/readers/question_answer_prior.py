"""A null: how often the actor was right when it gave this answer to this question, whatever the image.

This method is not in the paper. The confidence is the accuracy of a pair (normalized question, canonical answer) in the
fit partition, smoothed with m = `pseudo_counts` pseudo-answers that have the question's smoothed accuracy. A pair that
does not occur there gets the question's smoothed accuracy, an unseen question that of the partition.

The method sees no image. Its Natural CCG can exceed 0.5 nevertheless, because another image may change the answer; a
reader has to do better than this. Its Strict CCG, where the answer does not change, is exactly 0.5.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl

from dualread.readers import question_prior
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.settings import PriorSettings

FITTED_ON = "train"
NULL = True

# Stands for "no answer"; the canonical form of an answer is never empty.
NO_ANSWER = ""


class Settings(PriorSettings):
    """How accuracies are smoothed."""


def fit(examples: Examples, settings: PriorSettings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Count the answers of the fit partition; no temperature is fitted."""
    questions = question_prior.fit(examples, settings, {}, seed)
    overall, by_question = question_prior.question_priors(examples, settings.pseudo_counts)
    fitted = examples.partition("fit")
    keys = _keys(fitted.answers.table)
    back_off = {key: by_question[key[0]] for key in keys}
    prior = question_prior.smoothed(keys, fitted.correct, back_off, overall, settings.pseudo_counts)
    pairs = sorted(prior)
    return Weights(
        tensors={**questions.tensors, "pair_confidence": np.array([prior[p] for p in pairs], dtype=np.float64)},
        notes={**questions.notes, "pairs": [list(pair) for pair in pairs]},
    )


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the smoothed accuracy of (question, answer), or else of the question, or else of the partition."""
    notes, tensors = reader.weights.notes, reader.weights.tensors
    table = dict(zip(map(tuple, notes["pairs"]), tensors["pair_confidence"].tolist(), strict=True))
    back_off = question_prior.score(reader, answers).confidence.tolist()
    values = [table.get(key, b) for key, b in zip(_keys(answers.table), back_off, strict=True)]
    confidence = np.array(values, dtype=np.float64)
    return Scores(score=confidence, confidence=confidence, imputed=np.zeros(len(values), dtype=np.bool_))


def _keys(table: pl.DataFrame) -> list[tuple[str, str]]:
    return list(zip(table["question_key"].to_list(), table["canonical_answer"].fill_null(NO_ANSWER), strict=True))

"""LM-Polygraph's estimators of the generated tokens' log-probabilities (docs/estimators.md).

`tokens: completion` gives the estimator all tokens of the completion, stop token included, as LM-Polygraph itself does;
`tokens: answer` gives it the answer's tokens A alone, which sequence likelihood reads. Perplexity of A is then the
negative logarithm of the geometric mean whose log-odds are the score of `sequence_likelihood`.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import platt_scores
from dualread.schema.base import Section
from dualread_lm_polygraph import adapter

FEATURES: tuple[str, ...] = ("token_log_probs", "answer_positions")
FITTED_ON = "validation"
SCORES_UNFITTED = True


class Settings(Section):
    """Which estimator is asked."""

    estimator: Literal["Perplexity", "MaximumSequenceProbability"]
    """Its class in LM-Polygraph."""
    tokens: Literal["completion", "answer"]
    """Whether it reads the whole completion or the answer's tokens."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the Platt map on `validation`."""
    validation = examples.require("validation", both_classes=True)
    return adapter.with_platt(_certainty(validation.answers, settings), validation, "validation", settings.estimator)


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the negative uncertainty in nats as score and its Platt map as confidence."""
    return platt_scores(reader, _certainty(answers, reader.settings))


def _certainty(answers: Answers, settings: Settings) -> np.ndarray:
    names = answers.table["sample_id"].to_list()
    read = zip(
        names, answers.of_tokens("token_log_probs"), adapter.chosen_tokens(answers, settings.tokens), strict=True
    )
    statistics = (
        adapter.of_tokens("greedy_log_likelihoods", log_probs[chosen], sign=-1, where=name)
        for name, log_probs, chosen in read
    )
    return adapter.certainty(adapter.open_estimator(settings.estimator), statistics, names)

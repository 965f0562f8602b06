"""LM-Polygraph's estimators of the entropies of tokens (docs/estimators.md).

The entropy of a token is that of the distribution from which it was chosen, over the whole vocabulary, in nats. The
replay computes it at the same states as the log-probabilities, and stores it where a study has a method that reads it.
`tokens` as for `likelihood`.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import platt_scores
from dualread.schema.base import Section
from dualread_lm_polygraph import adapter

FEATURES: tuple[str, ...] = ("token_entropies", "token_log_probs", "answer_positions")
FITTED_ON = "validation"
SCORES_UNFITTED = True


class Settings(Section):
    """Which estimator is asked."""

    estimator: Literal["MeanTokenEntropy"]
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
    # Behind its last token, the row of a completion holds NaN, which the check of a chosen one would refuse.
    read = zip(names, answers.features("token_entropies"), adapter.chosen_tokens(answers, settings.tokens), strict=True)
    statistics = (
        adapter.of_tokens("entropy", entropies[chosen], sign=1, where=name) for name, entropies, chosen in read
    )
    return adapter.certainty(adapter.open_estimator(settings.estimator), statistics, names)

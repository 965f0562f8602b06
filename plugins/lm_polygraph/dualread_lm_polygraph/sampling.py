"""LM-Polygraph's estimators of sampled completions (docs/estimators.md).

They get the first K samples of the view: the whole completions as texts, the log-probabilities of all their tokens,
stop token included, and as semantic classes the groups of `semantic_uncertainty`: equal canonical answers, or, with a
view of `groups`, equal meanings. Every invalid sample is a class of its own.

SemanticEntropy with `class_probability_estimation: frequency` is the entropy of `semantic_uncertainty` times ln K.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import platt_scores
from dualread.readers.groups import sample_groups
from dualread.schema.base import Section, Wire
from dualread_lm_polygraph import adapter

FITTED_ON = "validation"
SCORES_UNFITTED = True
VIEWS = "score"
GROUPS = True


class Settings(Section):
    """Which estimator is asked about how many samples."""

    estimator: Literal[
        "MonteCarloSequenceEntropy", "MonteCarloNormalizedSequenceEntropy", "LexicalSimilarity", "SemanticEntropy"
    ]
    """Its class in LM-Polygraph."""
    k: Annotated[int, Field(ge=2)]
    """Sampled answers per question."""
    parameters: Wire | None = None
    """Arguments of the estimator's constructor."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the Platt map on `validation`."""
    validation = examples.require("validation", both_classes=True)
    return adapter.with_platt(_certainty(validation.answers, settings), validation, "validation", settings.estimator)


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the negative uncertainty as score and its Platt map as confidence."""
    return platt_scores(reader, _certainty(answers, reader.settings))


def classes(samples: list[str | None]) -> list[int]:
    """Return the number of each sample's class, which `samples` name; each None is a class of its own."""
    keys = [("invalid", i) if answer is None else ("answer", answer) for i, answer in enumerate(samples)]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return [numbers[key] for key in keys]


def _certainty(answers: Answers, settings: Settings) -> np.ndarray:
    statistics = _statistics(answers, settings.k)
    return adapter.certainty(
        adapter.open_estimator(settings.estimator, settings.parameters),
        statistics,
        answers.table["sample_id"].to_list(),
    )


def _statistics(answers: Answers, k: int) -> Iterator[adapter.Statistics]:
    grouped = sample_groups(answers, k)  # refuses an answer with fewer samples
    [view] = [view for view in answers.views if view.pairs is None]
    read = zip(answers.table["sample_id"], view.completions(), view.completion_log_probs(), grouped, strict=True)
    for name, texts, log_probs, groups in read:
        yield adapter.of_samples(texts[:k], log_probs[:k], classes(groups), where=name)

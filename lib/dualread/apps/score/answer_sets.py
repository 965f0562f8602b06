"""The answer sets of new questions: which of their choices have at least the probability that a study's threshold asks.

Probabilities are those that a study's sets have (`readers.replies.choice_probabilities`), and so is the rule
(`evaluation.answer_sets.in_set`).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from dualread.apps.score.answering import Answered
from dualread.apps.score.results import AnswerSet, SetOption
from dualread.errors import ArtifactError
from dualread.evaluation.answer_sets import SetThreshold, in_set
from dualread.readers.replies import choice_probabilities
from dualread.readers.requirements import ScoringReader

_NO_CHOICES = "the question has no choices. Give its options, or the answer type `closed` if they are yes and no"
_NOT_FINITE = "the model's log-probabilities of the choices are NaN"


def check_sets(readers: Mapping[str, ScoringReader], thresholds: Sequence[SetThreshold], where: str) -> None:
    """Check that each threshold is of a method that reads the probabilities of a question's choices.

    Raises:
        ArtifactError: One is not; `where` names the file.
    """
    for threshold in thresholds:
        if not _views(readers[threshold.method]):
            raise ArtifactError(
                f"{where}: has a threshold of answer sets of {threshold.method}, which reads no probabilities of"
                " choices. Export the bundle again."
            )


def answer_sets(
    readers: Mapping[str, ScoringReader], thresholds: Sequence[SetThreshold], answered: Answered
) -> list[list[AnswerSet]]:
    """Return the set of each question for each threshold; `thresholds` are of methods among `readers`, by method."""
    of_questions: list[list[AnswerSet]] = [[] for _ in answered.choices]
    for threshold in thresholds:
        view = answered.views[_views(readers[threshold.method])[0]]
        log_probs = view.choices()
        of_names = dict(zip(log_probs, choice_probabilities(log_probs, len(of_questions)).T, strict=False))
        for i, choices in enumerate(answered.choices):
            options = [(text, float(of_names[name][i])) for name, text in choices.items()]
            is_finite = not any(np.isnan(p) for _, p in options)
            of_questions[i].append(
                AnswerSet(
                    method=threshold.method,
                    miss_percent=threshold.miss_percent,
                    threshold=threshold.value,
                    n_clusters=threshold.n_clusters,
                    options=[_option(*option, threshold.value) for option in options if is_finite],
                    reason=(threshold.reason if is_finite else _NOT_FINITE) if choices else _NO_CHOICES,
                )
            )
    return of_questions


def _option(text: str, probability: float, threshold: float | None) -> SetOption:
    is_in = None if threshold is None else bool(in_set(np.array(probability), threshold))
    return SetOption(text=text, probability=probability, in_set=is_in)


def _views(reader: ScoringReader) -> list[str]:
    """Return the views of the probabilities of a question's choices that a reader reads."""
    return [view.name for view in reader.views if view.choices is not None and view.choices.options]

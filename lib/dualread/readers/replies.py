"""What readers take from a view of replies: sampled answers, stated percentages, and log-probabilities of choices."""

from collections.abc import Mapping, Sequence

import numpy as np

from dualread.errors import ConfigError
from dualread.grading.answers import stated_percent
from dualread.readers.base import Answers, Scores, ViewAnswers
from dualread.readers.groups import first_samples
from dualread.readers.verbalized import IMPUTED_CONFIDENCE


def sampled_answers(answers: Answers, k: int) -> list[list[str | None]]:
    """Return the canonical answers of the first `k` samples for every answer; None stands for an invalid sample.

    Raises:
        ConfigError: There is not exactly one view, the view has no completions, or an answer has fewer than `k`.
    """
    return first_samples(answers, answers.only_view(), k)


def mean_stated(views: Sequence[ViewAnswers]) -> Scores:
    """Return the mean of the valid statements as score and as confidence.

    An answer without a valid statement in any view gets 0.5 and is marked as imputed. The stated integers are added and
    their sum is divided once. A mean of probabilities would round: 80 and 90 would give more than 85 and 85, and 85 and
    95 less than 0.9.

    Raises:
        ConfigError: There is no view, or a view has several replies about one answer.
    """
    if not views:
        raise ConfigError("views: none; this reader needs at least one. Correct the method's config entry.")
    per_answer = zip(*(_stated(view) for view in views), strict=True)
    valid = [[percent for percent in percents if percent is not None] for percents in per_answer]
    means = [sum(percents) / (100 * len(percents)) if percents else IMPUTED_CONFIDENCE for percents in valid]
    confidence = np.array(means, dtype=np.float64)
    return Scores(score=confidence, confidence=confidence, imputed=np.array([not percents for percents in valid], bool))


def choice_log_probs(answers: Answers, names: Sequence[str]) -> np.ndarray:
    """Return the log-probabilities in nats of the choices `names` of the only view, float64 [n, number of names].

    An invalid answer is not shown to the actor again; its row is NaN. A view without them is a ConfigError.
    """
    view = answers.only_view()
    log_probs = view.choices()
    if not log_probs:  # no answer was valid
        return np.full((len(answers), len(names)), np.nan)
    if missing := [name for name in names if name not in log_probs]:
        shown = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise ConfigError(
            f"views.{view.name}: lacks {len(missing)} of the {len(names)} choices that this reader needs: {shown}. "
            "Add them to the view."
        )
    return np.stack([log_probs[name].astype(np.float64) for name in names], axis=1)


def choice_probabilities(log_probs: Mapping[str, np.ndarray], n: int) -> np.ndarray:
    """Return the probability of each choice among all of its question's, float64 [n, choices].

    `log_probs` has per choice its log-probabilities in nats [n]. NaN there, and here, is a choice that a question does
    not have.
    """
    values = np.stack([np.full(n, np.nan), *log_probs.values()], axis=1)[:, bool(log_probs) :]
    known = np.where(np.isnan(values), -np.inf, values)
    largest = known.max(axis=1, keepdims=True)
    weights = np.exp(known - np.where(np.isfinite(largest), largest, 0.0))
    total = weights.sum(axis=1, keepdims=True)
    return np.where((total > 0) & ~np.isnan(values), weights / np.where(total > 0, total, 1.0), np.nan)


def _stated(view: ViewAnswers) -> list[int | None]:
    """Return the stated percentages [n]; None where the reply states none or the actor was not asked."""
    replies = view.completions()
    if several := [len(texts) for texts in replies if len(texts) > 1]:
        raise ConfigError(
            f"views.{view.name}: {several[0]} replies to one answer, expected 1. Let the view ask for one."
        )
    return [stated_percent(texts[0]) if texts else None for texts in replies]

"""Sampled answers that count as the same: those of equal canonical form, and those that a view of `groups` joins.

A sample belongs to the first group whose first member means the same, or else begins a group (Kuhn et al., Semantic
Uncertainty, ICLR 2023, Algorithm 1). Where meanings are not transitive, it may mean the same as the first members of
several groups: the first of these gets it, as in LM-Polygraph; in the code of Farquhar et al. (Nature 630, 2024), the
last one does. All functions raise a ConfigError if there are other views than they need, or too few samples.
"""

from collections.abc import Iterator
from itertools import chain

import numpy as np

from dualread.errors import ConfigError
from dualread.grading.canonical import canonical
from dualread.grading.contracts.single import parse
from dualread.readers.answers import Answers, Pairs, ViewAnswers

Samples = list[str | None]


def canonical_samples(view: ViewAnswers) -> list[Samples]:
    """Return the canonical answers of a view's completions for every answer; None stands for an invalid sample."""
    # A contract only changes how the confidence is read, so the default one finds the answer of every actor.
    parsed = ((parse(text).answer for text in texts) for texts in view.completions())
    return [[None if answer is None else canonical(answer) or None for answer in row] for row in parsed]


def first_samples(answers: Answers, view: ViewAnswers, k: int) -> list[Samples]:
    """Return the canonical answers of a view's first `k` completions for every answer."""
    for sample_id, samples in zip(answers.table["sample_id"], view.completions(), strict=True):
        if len(samples) < k:
            raise ConfigError(
                f"views.{view.name}: {sample_id} has {len(samples)} samples, but the method reads the first {k}. "
                "Sample more for the view, or lower the method's k."
            )
    return [samples[:k] for samples in canonical_samples(view)]


def sample_groups(answers: Answers, k: int, n_views: int = 1) -> list[Samples]:
    """Return, for every answer, the groups of the first `k` samples of each view, one view after the other.

    A group is named by its first member; None stands for an invalid sample, which is a group of its own.
    """
    grouped = []
    for samples, pairs in _read(answers, k, n_views):
        groups: Samples = []
        for text in samples:
            members = (first for first in groups if first is not None and text is not None)
            groups.append(next((first for first in members if _pair(first, str(text), pairs)[1]), text))
        grouped.append(groups)
    return grouped


def agreement(answers: Answers, k: int) -> np.ndarray:
    """Return the share of the first `k` samples that mean the same as the committed answer, float64 [n].

    An invalid sample agrees with no answer, and no sample agrees with an invalid answer.
    """
    counts = [
        0 if answer is None else sum(text is not None and _pair(answer, text, pairs)[1] for text in samples)
        for answer, (samples, pairs) in zip(answers.table["canonical_answer"], _read(answers, k, 1), strict=True)
    ]
    return np.array(counts, dtype=np.float64) / k


def similarities(answers: Answers, k: int) -> Iterator[np.ndarray]:
    """Yield for every answer the similarities of its first `k` samples, float64 [k, k]; those of invalid ones are 0."""
    for samples, pairs in _read(answers, k, 1):
        yield np.array([[_pair(a, b, pairs)[0] if a and b else 0.0 for b in samples] for a in samples])


def _read(answers: Answers, k: int, n_views: int) -> Iterator[tuple[Samples, Pairs | None]]:
    grouping, sampled = ([view for view in answers.views if (view.pairs is not None) == kind] for kind in (True, False))
    if len(sampled) != n_views or len(grouping) > 1:
        names = ", ".join(view.name for view in answers.views) or "none"
        raise ConfigError(
            f"views: {names}; this reader needs {n_views} of completions, and besides at most one of `groups`. Correct"
            " the method's config entry."
        )
    samples = (list(chain(*rows)) for rows in zip(*(first_samples(answers, view, k) for view in sampled), strict=True))
    pairs = grouping[0].pairs if grouping else None
    return zip(samples, pairs or [None] * len(answers), strict=True)


def _pair(answer: str, compared: str, pairs: Pairs | None) -> tuple[float, bool]:
    """Return how similar two canonical answers are, and whether they count as the same."""
    if answer == compared or pairs is None:
        return float(answer == compared), answer == compared
    similarity, same = pairs[min(answer, compared), max(answer, compared)]
    return similarity or 0.0, bool(same)  # without a verdict, the answer's value is not taken (`readers.base.score`)

"""Semantic uncertainty: the entropy of K sampled answers (DualRead, app:baseline_protocols).

The first K samples at temperature 1 are grouped by canonical answer, or, with a view of `groups`, by meaning; every
invalid sample is a group of its own. With p the shares of the groups, the normalized entropy is -sum p ln p / ln K: 0
where all samples agree and 1 where no two do. By meaning, it is the discrete semantic entropy of Farquhar et al. (2024)
over ln K. The score is its negative. A Platt map with a positive slope, fitted on the validation split, turns the score
into a confidence. The committed answer is not used.

With the setting `t` it is kernel language entropy (Nikitin et al., NeurIPS 2024; the unnormalized heat kernel of their
code): samples are near each other as a view of `groups` by entailment says, and an invalid one is near none. With W the
sum of both directions (1 entailed, 1/2 neutral, 0 contradicted), D the sums of its rows on a diagonal, and exp(-t (D -
W)) normalized to the diagonal 1/K, the entropy of the eigenvalues takes the place of that of the groups.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import platt_notes, platt_scores
from dualread.readers.groups import sample_groups, similarities
from dualread.schema.base import Above0, Section

FITTED_ON = "validation"
SCORES_UNFITTED = True
VIEWS = "score"
GROUPS = True


class Settings(Section):
    """How many samples are read."""

    k: Annotated[int, Field(ge=2)]
    """Sampled answers per question."""
    t: Above0 | None = None
    """For kernel language entropy, how long heat spreads (0.3 in LM-Polygraph); without it, groups are counted."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the Platt map on `validation`."""
    validation = examples.require("validation", both_classes=True)
    certainty = _certainty(validation.answers, settings)
    reader = f"readers.semantic_uncertainty with k = {settings.k}"
    advice = "Give the validation split more images, or choose another k"
    return Weights(notes=platt_notes(certainty, validation, reader=reader, advice=advice))


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the negative normalized entropy as score and its Platt map as confidence."""
    return platt_scores(reader, _certainty(answers, reader.settings))


def normalized_entropy(samples: Sequence[str | None]) -> float:
    """Return the entropy of the groups of K >= 2 samples divided by its largest value, ln K.

    A sample is named by its group; None stands for an invalid sample.

    With groups of n answers it is 1 - ln(product of n^n) / ln(K^K). Both powers are exact integers, so that equal
    entropies are equal floats whatever the order of the answers. Different groups can have one entropy, too: of 16
    answers, one group of 10 and six of 1 have that of groups of 5, 5, 4 and 2. A sum of n ln n would round.
    """
    groups = Counter(answer for answer in samples if answer is not None)  # the factor of an invalid sample is 1
    concentration = math.prod(size**size for size in groups.values())
    return 1 - math.log(concentration) / math.log(len(samples) ** len(samples))


def kernel_entropy(similarity: np.ndarray, t: float) -> float:
    """Return the entropy of the heat kernel over ln K; `similarity` [K, K] is the mean of both directions."""
    weights = 2 * (similarity - np.diag(np.diag(similarity)))
    values, vectors = np.linalg.eigh(np.diag(weights.sum(axis=0)) - weights)
    kernel = (vectors * np.exp(-t * values)) @ vectors.T
    roots = np.sqrt(np.diag(kernel))
    shares = np.linalg.eigvalsh(kernel / np.outer(roots, roots) / len(kernel))
    entropy = -math.fsum(share * math.log(share) for share in shares if share > 0)
    return round(entropy / math.log(len(kernel)), 12)  # so that the order of samples says nothing


def _certainty(answers: Answers, settings: Settings) -> np.ndarray:
    """Return the negative entropy of the first `k` samples, float64 [n]."""
    if settings.t is None:
        entropy = [normalized_entropy(samples) for samples in sample_groups(answers, settings.k)]
    else:
        entropy = [kernel_entropy(similarity, settings.t) for similarity in similarities(answers, settings.k)]
    return 0.0 - np.array(entropy, dtype=np.float64)  # a plain minus sign would turn 0.0 into -0.0

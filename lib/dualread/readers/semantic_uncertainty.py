"""Semantic uncertainty: the entropy of K sampled answers (DualRead, app:baseline_protocols).

The first K samples at temperature 1 are grouped by canonical answer; every invalid sample is a group of its own. With
p the shares of the groups, the normalized entropy is -sum p ln p / ln K: 0 where all samples agree and 1 where no two
do. The score is its negative. A Platt map with a positive slope, fitted on the validation split, turns the score into a
confidence. The committed answer is not used.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import platt_notes, platt_scores
from dualread.readers.replies import sampled_answers
from dualread.schema.base import Section

FITTED_ON = "validation"
SCORES_UNFITTED = True
VIEWS = "score"


class Settings(Section):
    """How many samples are read."""

    k: Annotated[int, Field(ge=2)]
    """Sampled answers per question."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the Platt map on `validation`."""
    validation = examples.require("validation", both_classes=True)
    certainty = _certainty(validation.answers, settings.k)
    reader = f"readers.semantic_uncertainty with k = {settings.k}"
    advice = "Give the validation split more images, or choose another k"
    return Weights(notes=platt_notes(certainty, validation, reader=reader, advice=advice))


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the negative normalized entropy as score and its Platt map as confidence."""
    return platt_scores(reader, _certainty(answers, reader.settings.k))


def normalized_entropy(samples: Sequence[str | None]) -> float:
    """Return the entropy of the groups of K >= 2 canonical answers divided by its largest value, ln K.

    None stands for an invalid sample.

    With groups of n answers it is 1 - ln(product of n^n) / ln(K^K). Both powers are exact integers, so that equal
    entropies are equal floats whatever the order of the answers. Different groups can have one entropy, too: of 16
    answers, one group of 10 and six of 1 have that of groups of 5, 5, 4 and 2. A sum of n ln n would round.
    """
    groups = Counter(answer for answer in samples if answer is not None)  # the factor of an invalid sample is 1
    concentration = math.prod(size**size for size in groups.values())
    return 1 - math.log(concentration) / math.log(len(samples) ** len(samples))


def _certainty(answers: Answers, k: int) -> np.ndarray:
    """Return the negative normalized entropy of the first `k` samples, float64 [n]."""
    entropy = [normalized_entropy(samples) for samples in sampled_answers(answers, k)]
    return 0.0 - np.array(entropy, dtype=np.float64)  # a plain minus sign would turn 0.0 into -0.0

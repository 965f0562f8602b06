"""VASE, vision-amplified semantic entropy: how much the answers rest on the image, and how far they agree.

The reader's two views are K samples on the image and, second, K samples on distorted images, mostly one on each.
Samples are grouped by canonical answer, or by meaning with a view of `groups`, over both views together; every invalid
sample is a group of its own. A sample weighs exp(its mean token log-probability), and p and p' are the shares of the
groups in the weights of each view. The score is the negative entropy of

    softmax(p + alpha (p - p')),

so that groups which a distortion makes rarer count more. A Platt map with a positive slope, fitted on the validation
split, turns the score into a confidence. With `weights: equal`, each sample weighs the same, for services that give no
log-probabilities.

References:
    Liao et al., Vision-Amplified Semantic Entropy for Hallucination Detection in Medical Visual Question Answering,
    MICCAI 2025, which groups samples by entailment.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from dualread.errors import ConfigError
from dualread.readers.base import Answers, Examples, FittedReader, Scores, ViewAnswers, Weights
from dualread.readers.calibrated import platt_notes, platt_scores
from dualread.readers.groups import sample_groups
from dualread.schema.base import AtLeast0, Section

FITTED_ON = "validation"
SCORES_UNFITTED = True
VIEWS = "score"
GROUPS = True


class Settings(Section):
    """How samples are read."""

    k: Annotated[int, Field(ge=2)]
    """Samples per question of each view."""
    alpha: AtLeast0
    """How much the difference that a distortion makes counts."""
    weights: Literal["likelihood", "equal"]
    """Whether a sample weighs exp(its mean token log-probability), or all weigh the same."""


Shares = Mapping[str, float]  # of each group in the weights


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the Platt map on `validation`."""
    validation = examples.require("validation", both_classes=True)
    certainty = _certainty(validation.answers, settings)
    advice = "Give the validation split more images, or choose another k"
    return Weights(notes=platt_notes(certainty, validation, reader="readers.vase", advice=advice))


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the negative entropy as score and its Platt map as confidence."""
    return platt_scores(reader, _certainty(answers, reader.settings))


def shares(samples: Sequence[str | None], log_probs: Sequence[float], view: str) -> Shares:
    """Return the share of each group; `log_probs` are the mean token log-probabilities of the samples."""
    largest = max(log_probs)
    weights: dict[str, list[float]] = {}
    for number, (answer, log_prob) in enumerate(zip(samples, log_probs, strict=True)):
        group = f"invalid {view} {number}" if answer is None else f"answer {answer}"
        weights.setdefault(group, []).append(math.exp(log_prob - largest))
    total = math.fsum(weight for of_group in weights.values() for weight in of_group)
    return {group: math.fsum(of_group) / total for group, of_group in weights.items()}


def amplified_entropy(clean: Shares, distorted: Shares, alpha: float) -> float:
    """Return the entropy of softmax(p + alpha (p - p')) over the groups of both, in nats."""
    groups = sorted(clean.keys() | distorted.keys())
    p_clean, other = ([shares_of.get(group, 0.0) for group in groups] for shares_of in (clean, distorted))
    exponents = [math.exp(p + alpha * (p - q)) for p, q in zip(p_clean, other, strict=True)]
    total = math.fsum(exponents)
    return -math.fsum(value / total * math.log(value / total) for value in exponents)


def _certainty(answers: Answers, settings: Settings) -> np.ndarray:
    """Return the negative amplified entropy, float64 [n]."""
    k, groups = settings.k, sample_groups(answers, settings.k, n_views=2)
    halves = [row[:k] for row in groups], [row[k:] for row in groups]
    views = (view for view in answers.views if view.pairs is None)
    clean, distorted = (_of_view(answers, *of_view, settings) for of_view in zip(views, halves, strict=True))
    entropies = [amplified_entropy(*both, settings.alpha) for both in zip(clean, distorted, strict=True)]
    return 0.0 - np.array(entropies, dtype=np.float64)  # a plain minus sign would turn 0.0 into -0.0


def _of_view(
    answers: Answers, view: ViewAnswers, sampled: Sequence[Sequence[str | None]], settings: Settings
) -> list[Shares]:
    k = settings.k
    if settings.weights == "equal":
        return [shares(samples, [0.0] * k, view.name) for samples in sampled]
    shares_of_rows = []
    for name, samples, tokens in zip(answers.table["sample_id"], sampled, view.completion_log_probs(), strict=True):
        if any(len(of_one) == 0 for of_one in tokens[:k]):
            raise ConfigError(
                f"views.{view.name}: {name} has samples without log-probabilities, which weigh them. Set the method's"
                " `weights` to `equal`, or use an actor whose log-probabilities are known."
            )
        shares_of_rows.append(shares(samples, [float(of_one.mean()) for of_one in tokens[:k]], view.name))
    return shares_of_rows

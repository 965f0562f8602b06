"""Histogram binning on any method: the share of right validation answers in the bin of its score.

The bins hold about equally many validation answers: their edges are quantiles of the scores, and equal edges are one.
A score on an edge belongs to the bin above it, and scores beyond the first and the last edge to the first and the last
bin, so that no bin is empty.

References:
    Zadrozny and Elkan, Obtaining Calibrated Probability Estimates from Decision Trees and Naive Bayesian Classifiers,
    2001.
"""

from collections.abc import Mapping

import numpy as np

from dualread.readers._post_hoc import mapped, validation_scores
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.schema.base import Positive, Section

FITTED_ON = "validation"
PARENTS: tuple[str, ...] = ("of",)


class Settings(Section):
    """How many bins there are."""

    bins: Positive
    """Bins of about equally many validation answers; fewer where scores are equal."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Find the bins on `validation`."""
    scores, correct = validation_scores(examples, parents)
    values = scores["of"].score
    shares = np.linspace(0, 1, settings.bins + 1)[1:-1]
    # An edge is one of the scores, not a number between two of them, so that it does not depend on rounding.
    edges = np.unique(np.quantile(values, shares, method="higher"))
    edges = edges[edges > values.min()]
    bins = np.searchsorted(edges, values, side="right")
    right, all_of = (np.bincount(bins[rows], minlength=len(edges) + 1) for rows in (correct, slice(None)))
    return Weights(tensors={"edges": edges.astype(np.float64), "confidences": right / all_of})


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the share of the bin as score and as confidence."""
    edges, shares = (reader.weights.tensors[name] for name in ("edges", "confidences"))
    return mapped(reader, answers, lambda raw: shares[np.searchsorted(edges, raw["of"].score, side="right")])

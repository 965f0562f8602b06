"""Platt scaling on any method: a logistic map of its score with a positive slope, fitted on validation answers."""

from collections.abc import Mapping

from dualread.readers._post_hoc import mapped, validation_scores
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibration.platt import Platt, fit_platt
from dualread.schema.base import Section

FITTED_ON = "validation"
PARENTS: tuple[str, ...] = ("of",)


def fit(examples: Examples, settings: Section, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the map on `validation`."""
    scores, correct = validation_scores(examples, parents)
    platt = fit_platt(scores["of"].score, correct)
    return Weights(notes={"slope": platt.slope, "intercept": platt.intercept, "clipped": platt.clipped})


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the map of the method's score as score and as confidence."""
    platt = Platt(**reader.weights.notes)
    return mapped(reader, answers, lambda scores: platt.confidence(scores["of"].score))

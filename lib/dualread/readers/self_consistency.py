"""Self-consistency SC@K: how many of K samples repeat the committed answer (DualRead, app:baseline_protocols).

The score is the share of the first K samples at temperature 1 that have the committed answer's canonical form, or, with
a view of `groups`, its meaning. An invalid sample disagrees with every answer, and an invalid committed answer agrees
with no sample. A Platt map with a positive slope, fitted on the validation split, turns the score into a confidence.
Methods with different K read the first samples of the same view.
"""

from collections.abc import Mapping

from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import platt_notes, platt_scores
from dualread.readers.groups import agreement
from dualread.schema.base import Positive, Section

FITTED_ON = "validation"
SCORES_UNFITTED = True
VIEWS = "score"
GROUPS = True


class Settings(Section):
    """How many samples are read."""

    k: Positive
    """Sampled answers per question."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the Platt map on `validation`."""
    validation = examples.require("validation", both_classes=True)
    share = agreement(validation.answers, settings.k)
    reader = f"readers.self_consistency with k = {settings.k}"
    advice = "Give the validation split more images, or choose another k"
    return Weights(notes=platt_notes(share, validation, reader=reader, advice=advice))


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the share of agreeing samples as score and its Platt map as confidence."""
    return platt_scores(reader, agreement(answers, reader.settings.k))

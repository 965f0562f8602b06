"""LM-Polygraph's relative Mahalanobis distance of an answer's state (docs/estimators.md).

From the distance to training answers' states, it subtracts the distance to those of a background, for which
LM-Polygraph takes texts of a general corpus. Here, as where the distance was introduced, the background is all training
data, and the distance is that to one class of them, the right answers. All else is as for `density`.

References:
    Ren et al., A Simple Fix to Mahalanobis Distance for Improving Near-OOD Detection, 2021.
"""

from collections.abc import Mapping
from typing import Literal

from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import platt_scores
from dualread.schema.base import Section
from dualread_lm_polygraph import adapter
from dualread_lm_polygraph.density import distances

FEATURES: tuple[str, ...] = ("h_ans",)
FITTED_ON = "train"


class Settings(Section):
    """Which estimator is asked."""

    estimator: Literal["RelativeMahalanobisDistanceSeq"]
    """Its class in LM-Polygraph."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Keep the states of the right answers in `fit` and of all of them, and fit the Platt map on `calibration`."""
    fitted = examples.require("fit", both_classes=True)
    calibration = examples.require("calibration", both_classes=True)
    states = fitted.answers.features("h_ans")
    tensors = {
        "train": adapter.training_states(states[fitted.correct], where="partition 'fit', right answers"),
        "background_train": adapter.training_states(states, where="partition 'fit'"),
    }
    found = distances(calibration.answers, settings.estimator, tensors)
    return adapter.with_platt(found, calibration, "calibration", settings.estimator, **tensors)


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the negative difference of distances, which has no unit, as score and its Platt map as confidence."""
    return platt_scores(reader, distances(answers, reader.settings.estimator, reader.weights.tensors))

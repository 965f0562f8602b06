"""LM-Polygraph's relative Mahalanobis distance of an answer's state (docs/estimators.md).

From the distance to the training answers' states, it subtracts the distance to those of a background, for which
LM-Polygraph takes texts of a general corpus. Here the background is a view that the study has stored: the states of
the same answers beside a black image. Everything else is as for `lm_polygraph_density`.
"""

from collections.abc import Mapping

from dualread.readers import _lm_polygraph as adapter
from dualread.readers._calibrated import platt_scores
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.lm_polygraph_density import distances
from dualread.specs.parts import Settings

ENVIRONMENT = "estimators"
FEATURES: tuple[str, ...] = ("h_ans",)
FITTED_ON = "train"
VIEWS = "fit"
SETTINGS = {"estimator": {"enum": ["RelativeMahalanobisDistanceSeq"]}}


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Keep the states of `fit` and of the view of it, and fit the Platt map on `calibration`."""
    fitted = examples.require("fit", both_classes=False).answers
    calibration = examples.require("calibration", both_classes=True)
    background = fitted.only_view().features("h_ans")
    tensors = {
        "train": adapter.training_states(fitted.features("h_ans"), where="partition 'fit'"),
        "background_train": adapter.training_states(background, where="partition 'fit', the view"),
    }
    found = distances(calibration.answers, settings, tensors)
    return adapter.with_platt(found, calibration, "calibration", settings, **tensors)


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the negative difference of distances, which has no unit, as score and its Platt map as confidence."""
    return platt_scores(reader, distances(answers, reader.settings, reader.weights.tensors))

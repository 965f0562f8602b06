"""LM-Polygraph's distances of an answer's state from those of training answers (docs/estimators.md).

The state is h_ans, the mean of the answer tokens' final-layer states. LM-Polygraph itself takes the mean over prompt
and completion. The training answers are those of the fit partition, right and wrong ones. The Platt map is fitted on
the calibration partition.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

import numpy as np

from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import platt_scores
from dualread.schema.base import Section
from dualread_lm_polygraph import adapter

FEATURES: tuple[str, ...] = ("h_ans",)
FITTED_ON = "train"


class Settings(Section):
    """Which estimator is asked."""

    estimator: Literal["MahalanobisDistanceSeq", "RDESeq"]
    """Its class in LM-Polygraph."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Keep the states of `fit`, from which the estimator fits itself, and fit the Platt map on `calibration`."""
    fitted = examples.require("fit", both_classes=False)
    calibration = examples.require("calibration", both_classes=True)
    tensors = {"train": adapter.training_states(fitted.answers.features("h_ans"), where="partition 'fit'")}
    found = distances(calibration.answers, settings.estimator, tensors)
    return adapter.with_platt(found, calibration, "calibration", settings.estimator, **tensors)


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the negative distance, which has no unit, as score and its Platt map as confidence."""
    return platt_scores(reader, distances(answers, reader.settings.estimator, reader.weights.tensors))


def distances(answers: Answers, estimator: str, tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the negative distances of h_ans, float64 [n].

    Args:
        answers: The answers.
        estimator: The class of LM-Polygraph.
        tensors: States [n, D] of training answers, `train`, and perhaps of a background, `background_train`.
    """
    names, width = answers.table["sample_id"].to_list(), tensors["train"].shape[1]
    states = answers.features("h_ans")
    statistics = (adapter.of_state(state, width, where=name) for state, name in zip(states, names, strict=True))
    shared = {f"{name}_embeddings_decoder": of for name, of in tensors.items()}
    key = tuple((name, of.shape, of.tobytes()) for name, of in sorted(tensors.items()))
    return adapter.certainty(_estimator(estimator, key), statistics, names, shared)


# An estimator fits itself when it is first called. One process scores many shards with the same training answers.
@lru_cache(maxsize=1)
def _estimator(name: str, fitted_on: object) -> adapter.Estimator:
    return adapter.open_estimator(name)

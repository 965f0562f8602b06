"""VAUQ, vision-aware uncertainty: the entropy of the answer, and how much of its certainty rests on the image.

With H the mean entropy of the answer's tokens, and H' the same where the core of the image is hidden, which the model's
attention chooses (the measure `hidden_core` of the reader's view), the image-information score is IS = H' - H, and

    VAUQ = H - alpha IS.

VAUQ is an uncertainty: the score is its negative. A Platt map with a positive slope, fitted on the validation split,
turns the score into a confidence.

References:
    Park et al., VAUQ: Vision-Aware Uncertainty Quantification for LVLM Self-Evaluation, Findings of ACL 2026,
    arXiv 2602.21054. The code of its authors (deeplearning-wisc/vauq) hides .4, .1 or all of the image's tokens with an
    alpha of .6, 1.5 or .6, by benchmark, and takes the attention of the layers 10 to 24 of 32. Its entropies are in
    bits, here they are in nats: the score differs by a factor.
"""

from collections.abc import Mapping

import numpy as np

from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import platt_notes, platt_scores
from dualread.schema.base import AtLeast0, Section

FITTED_ON = "validation"
SCORES_UNFITTED = True
VIEWS = "score"


class Settings(Section):
    """How the two parts are weighed."""

    alpha: AtLeast0
    """The weight of the image-information score."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the Platt map on `validation`."""
    validation = examples.require("validation", both_classes=True)
    certainty = _certainty(validation.answers, settings.alpha)
    advice = "Give the validation split more images, or choose another alpha"
    return Weights(notes=platt_notes(certainty, validation, reader="readers.vauq", advice=advice))


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the negative VAUQ as score and its Platt map as confidence."""
    return platt_scores(reader, _certainty(answers, reader.settings.alpha))


def _certainty(answers: Answers, alpha: float) -> np.ndarray:
    """Return alpha IS - H, float64 [n]."""
    view = answers.only_view()
    full, hidden = (view.features(name)[:, 0].astype(np.float64) for name in ("entropy", "entropy_hidden"))
    return alpha * (hidden - full) - full

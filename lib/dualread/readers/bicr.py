"""BICR: blind-image contrastive ranking (Khanmohammadi 2026, arXiv 2605.10893; DualRead, app:baseline_protocols).

An MLP on h_pre that learns to give a correct answer less confidence when the image is black. The loss of a batch is

    class-weighted cross-entropy(z, p_real) + beta * mean (p_real - z)^2
        + lambda * sum over correct answers of relu(gamma - (p_real - p_black)) / (number of correct answers + 1e-8)

with probabilities p = sigmoid(log-odds), beta = `brier_weight`, lambda = `ranking_weight` and gamma = `margin`. Adam
(betas 0.9 and 0.999) has gradients clipped to the norm `clip_norm`. The view is a replay with a black image of the same
size. Only the fit reads it; the score depends on the real image's state alone. The temperature is fitted on the
calibration partition.

What the papers leave open is decided here:
- Early stopping watches the class-weighted cross-entropy of the real states, as for PSR and SAPLMA. The score depends
  on these states alone, and the criterion does not depend on beta, lambda or gamma. `_network` has the training loop.
- pos_weight is n_wrong / n_correct of the fit partition. The real states of this partition standardize both views.
  Dropout drops different units in the two views.
- SPACE is what the stage tune_reader searches. Of the paper's search only the result, 1024-512, is known; the narrower
  networks are our choice.
"""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from dualread.readers._network import Loss, cross_entropy, fit_probe, probe_log_odds
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibrated import branch_scores
from dualread.readers.settings import NetworkSettings
from dualread.schema.base import AS_GIVEN, Above0, AtLeast0, BelowOne, Share

FEATURES: tuple[str, ...] = ("h_pre",)
FITTED_ON = "train"
VIEWS = "fit"
OPTIMIZER = "Adam"  # a class of torch.optim; the table of hyperparameters prints it
SPACE = {
    "brier_weight": {"low": 0.0, "high": 0.5},
    "ranking_weight": {"low": 0.01, "high": 0.3},
    "margin": {"low": 0.05, "high": 0.25},
    "learning_rate": {"low": 1e-5, "high": 1e-3, "log": True},
    "weight_decay": {"low": 1e-6, "high": 1e-3, "log": True},
    "dropout": {"choices": [0.0, 0.1, 0.3, 0.5]},
    "hidden": {"choices": [[1024, 512], [512, 256], [256, 128]]},
}


class Settings(NetworkSettings):
    """How the network is trained; the paper's symbols are in parentheses."""

    brier_weight: Annotated[AtLeast0, AS_GIVEN]
    """Weight of the Brier score of the real image (beta)."""
    ranking_weight: Annotated[AtLeast0, AS_GIVEN]
    """Weight of the ranking of the real image above the black one (lambda)."""
    margin: Annotated[Share, AS_GIVEN]
    """Difference of confidence between the two above which the ranking asks for no more (gamma)."""
    dropout: Annotated[BelowOne, AS_GIVEN]
    """Share of each hidden layer's units that a training step drops."""
    clip_norm: Annotated[Above0, AS_GIVEN]
    """Largest norm of a step's gradient."""


def fit(examples: Examples, settings: Settings, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Train on `fit` and its black view, choose the epoch on `stop`, and fit the temperature on `calibration`."""
    return fit_probe(
        examples,
        "h_pre",
        settings,
        seed,
        contrast=lambda answers: answers.only_view().features("h_pre"),
        loss=lambda weight: partial(contrastive_loss, likelihood=cross_entropy(weight), settings=settings),
        optimizer=OPTIMIZER,
        dropout=settings.dropout,
        clip_norm=settings.clip_norm,
    )


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the uncalibrated log-odds as score, the temperature-scaled probability as confidence."""
    return branch_scores(reader, probe_log_odds(reader.weights.tensors, answers.features("h_pre")))


def contrastive_loss(log_odds: Any, correct: Any, *, likelihood: Loss, settings: Settings) -> Any:
    """Return the loss of a batch of log-odds [batch, 2], for the real image and the black one, and labels [batch]."""
    p_real, p_black = log_odds.sigmoid().unbind(1)
    brier = (p_real - correct).square().mean()
    shortfall = (settings.margin - (p_real - p_black)).relu() * correct
    ranking = shortfall.sum() / (correct.sum() + 1e-8)
    return likelihood(log_odds[:, 0], correct) + settings.brier_weight * brier + settings.ranking_weight * ranking

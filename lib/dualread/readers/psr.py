"""PSR: pre-answer solvability read (DualRead, sec:pre_read).

An MLP on h_pre, the final-layer state at the last non-padding prompt token: is this question, with this image, one that
the actor will answer correctly? Class-weighted binary cross-entropy with pos_weight = n_wrong / n_correct of the fit
partition; AdamW (betas 0.9 and 0.999); the temperature from the calibration partition.

What the paper leaves open, decided here:
- Early stopping watches the same class-weighted loss on the stop partition; the epoch with the least loss is restored,
  the earlier one among equals; `patience` epochs without a new least end the fit.
- Initial weights and biases are uniform in +-1/sqrt(fan-in), torch's default, from the reader's own generator.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from dualread.readers._calibrated import branch_scores, temperature_notes
from dualread.readers._interface import Answers, Examples, FittedReader, Scores, Weights, check_settings
from dualread.readers._standardize import fit_standardization, standardized
from dualread.readers._torch import affine, one_thread

FEATURES: tuple[str, ...] = ("h_pre",)
PARENTS: tuple[str, ...] = ()
FITTED_ON = "train"
VIEWS = None
SETTINGS = {
    "hidden": {"type": "array", "items": {"type": "integer", "minimum": 1}},
    "learning_rate": {"type": "number", "exclusiveMinimum": 0},
    "weight_decay": {"type": "number", "minimum": 0},
    "batch_size": {"type": "integer", "minimum": 1},
    "max_epochs": {"type": "integer", "minimum": 1},
    "patience": {"type": "integer", "minimum": 1},
}


def fit(examples: Examples, settings: Mapping[str, Any], parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Train on `fit`, choose the epoch on `stop`, fit the temperature on `calibration`."""
    check_settings(settings, SETTINGS, module="readers.psr")
    fitted = examples.require("fit", both_classes=True)
    stop = examples.require("stop", both_classes=False)
    calibration = examples.require("calibration", both_classes=True)
    tensors = fit_standardization(fitted.answers.features("h_pre"))
    layers, notes = _train(
        standardized(fitted.answers.features("h_pre"), tensors).astype(np.float32),
        fitted.correct,
        standardized(stop.answers.features("h_pre"), tensors).astype(np.float32),
        stop.correct,
        settings,
        seed,
    )
    tensors |= layers
    return Weights(
        tensors=tensors, notes=notes | temperature_notes(_log_odds(tensors, calibration.answers), calibration)
    )


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the uncalibrated log-odds as score, the temperature-scaled probability as confidence."""
    return branch_scores(reader, _log_odds(reader.weights.tensors, answers))


def _log_odds(tensors: Mapping[str, np.ndarray], answers: Answers) -> np.ndarray:
    x = standardized(answers.features("h_pre"), tensors)
    depth = sum(name.startswith("weight_") for name in tensors)
    for layer in range(depth):
        x = affine(x, tensors[f"weight_{layer}"], tensors[f"bias_{layer}"])
        x = np.maximum(x, 0.0) if layer < depth - 1 else x
    return x[:, 0]


def _train(
    x: np.ndarray,
    correct: np.ndarray,
    x_stop: np.ndarray,
    correct_stop: np.ndarray,
    settings: Mapping[str, Any],
    seed: int,
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the restored epoch's weight_k [out, in] and bias_k [out], float32, and the notes of the training."""
    import torch
    from torch.nn import functional

    generator = torch.Generator().manual_seed(seed)
    pos_weight = float((~correct).sum() / correct.sum())
    parameters = _initial([x.shape[1], *settings["hidden"], 1], generator)

    def loss(inputs: Any, labels: Any) -> Any:
        for layer in range(0, len(parameters), 2):
            inputs = functional.linear(inputs, parameters[layer], parameters[layer + 1])
            inputs = functional.relu(inputs) if layer < len(parameters) - 2 else inputs
        return functional.binary_cross_entropy_with_logits(inputs[:, 0], labels, pos_weight=torch.tensor(pos_weight))

    with one_thread():
        data = torch.from_numpy(x), torch.from_numpy(correct.astype(np.float32))
        watched = torch.from_numpy(x_stop), torch.from_numpy(correct_stop.astype(np.float32))
        optimizer = torch.optim.AdamW(
            parameters, lr=settings["learning_rate"], betas=(0.9, 0.999), weight_decay=settings["weight_decay"]
        )
        best_loss, best_epoch, best = float("inf"), 0, [p.detach().clone() for p in parameters]
        epoch = 0
        while epoch < settings["max_epochs"] and epoch - best_epoch < settings["patience"]:
            epoch += 1
            for batch in torch.randperm(len(x), generator=generator).split(settings["batch_size"]):
                optimizer.zero_grad()
                loss(data[0][batch], data[1][batch]).backward()
                optimizer.step()
            with torch.no_grad():
                stop_loss = float(loss(*watched))
            if stop_loss < best_loss:
                best_loss, best_epoch, best = stop_loss, epoch, [p.detach().clone() for p in parameters]
    names = [f"{kind}_{layer}" for layer in range(len(best) // 2) for kind in ("weight", "bias")]
    notes = {"epochs_run": epoch, "epoch_restored": best_epoch, "stop_loss": best_loss, "pos_weight": pos_weight}
    return {name: p.numpy() for name, p in zip(names, best, strict=True)}, notes


def _initial(widths: list[int], generator: Any) -> list[Any]:
    import torch

    parameters = []
    for fan_in, fan_out in pairwise(widths):
        bound = fan_in**-0.5
        for shape in ((fan_out, fan_in), (fan_out,)):
            parameters.append(torch.empty(shape).uniform_(-bound, bound, generator=generator).requires_grad_())
    return parameters

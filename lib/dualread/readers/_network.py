"""The network that PSR, SAPLMA and BICR train: a multilayer perceptron on standardized states, stopped early.

Hidden layers with ReLU, one output, the log-odds that the answer is correct. The settings `hidden`, `learning_rate`,
`weight_decay`, `batch_size`, `max_epochs` and `patience` mean the same to all three.

What the papers leave open is decided here:
- Early stopping watches a loss on the stop partition, computed without dropout. The epoch with the lowest loss is
  restored, the earliest one among equals. The fit ends after `patience` epochs without a new lowest loss.
- Initial weights and biases are uniform in +-1/sqrt(fan-in), which is torch's default. The reader's own generator draws
  them, the order of the rows, and dropout.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from dualread.errors import UnfittedError
from dualread.progress import track
from dualread.readers.base import Answers, Examples, Weights
from dualread.readers.calibrated import temperature_notes
from dualread.readers.linear import affine, fit_standardization, one_thread, standardized
from dualread.readers.settings import NetworkSettings

# A differentiable loss of two tensors: log-odds, and labels (1.0 = correct).
Loss = Callable[[Any, Any], Any]


def fit_probe(
    examples: Examples,
    feature: str,
    settings: NetworkSettings,
    seed: int,
    *,
    contrast: Callable[[Answers], np.ndarray] | None = None,
    loss: Callable[[float], Loss] | None = None,
    **how: Any,
) -> Weights:
    """Fit a network on the states `feature` as PSR does: class-weighted cross-entropy, AdamW, and a temperature.

    The weights are fitted on the fit partition, the epoch is chosen on `stop`, and the temperature is fitted on
    `calibration`. `contrast` returns other states of the fitted answers, [n, D], which then stand beside theirs for a
    loss that compares both. `loss` makes the loss from the weight of correct answers; early stopping always watches the
    cross-entropy. Further arguments are those of `train`.
    """
    fitted = examples.require("fit", both_classes=True)
    stop = examples.require("stop", both_classes=False)
    calibration = examples.require("calibration", both_classes=True)
    tensors = fit_standardization(fitted.answers.features(feature))
    x, x_stop = (standardized(part.answers.features(feature), tensors) for part in (fitted, stop))
    if contrast is not None:
        x = np.stack([x, standardized(contrast(fitted.answers), tensors)], axis=1)
    weight = pos_weight(fitted.correct)
    losses = {"loss": (loss or cross_entropy)(weight), "stop_loss": cross_entropy(weight)}
    layers, notes = train((x, fitted.correct), (x_stop, stop.correct), settings, seed, **losses, **how)
    tensors |= layers
    temperature = temperature_notes(probe_log_odds(tensors, calibration.answers.features(feature)), calibration)
    return Weights(tensors=tensors, notes={**notes, "pos_weight": weight, **temperature})


def probe_log_odds(tensors: Mapping[str, np.ndarray], features: np.ndarray) -> np.ndarray:
    """Return the uncalibrated log-odds, float64 [n], of states [n, D]."""
    x = standardized(features, tensors)
    depth = sum(name.startswith("weight_") for name in tensors)
    for layer in range(depth):
        x = affine(x, tensors[f"weight_{layer}"], tensors[f"bias_{layer}"])
        x = np.maximum(x, 0.0) if layer < depth - 1 else x
    return x[:, 0]


def pos_weight(correct: np.ndarray) -> float:
    """Return n_wrong / n_correct, the weight of a correct answer that gives both classes the same total weight."""
    return float((~correct).sum() / correct.sum())


def cross_entropy(weight: float) -> Loss:
    """Return the mean binary cross-entropy in which a correct answer has the weight `weight`."""
    import torch
    from torch.nn import functional

    return partial(functional.binary_cross_entropy_with_logits, pos_weight=torch.tensor(weight))


def train(
    fitted: tuple[np.ndarray, np.ndarray],
    stop: tuple[np.ndarray, np.ndarray],
    settings: NetworkSettings,
    seed: int,
    *,
    loss: Loss,
    stop_loss: Loss,
    optimizer: str = "AdamW",
    dropout: float = 0.0,
    clip_norm: float = float("inf"),
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Train a network; return weight_k [out, in] and bias_k [out] of the restored epoch, float32, and notes about it.

    Of `fitted`, states are standardized, [n, D], or [n, K, D] where the loss compares K states per answer, and labels
    bool [n]; of `stop`, states are [m, D]. The losses take log-odds [batch] or [batch, K] and labels [batch]; early
    stopping watches `stop_loss`. `optimizer` is a class of torch.optim, `dropout` the share of each hidden layer's
    units that a training step drops, and `clip_norm` the largest norm of a step's gradient.

    Raises:
        UnfittedError: The loss on `stop` is never a finite number.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    parameters = _initial([fitted[0].shape[-1], *settings.hidden, 1], generator)
    with one_thread():
        x, labels, x_stop, labels_stop = (torch.from_numpy(a.astype(np.float32)) for a in (*fitted, *stop))
        rate, decay = settings.learning_rate, settings.weight_decay
        kind = getattr(torch.optim, optimizer)
        updates = kind(parameters, lr=rate, betas=(0.9, 0.999), weight_decay=decay, fused=True)
        epoch, best_loss, best_epoch, best = 0, float("inf"), 0, [p.detach().clone() for p in parameters]
        for epoch in track(range(1, settings.max_epochs + 1), settings.max_epochs, "fitting (epochs at most)"):
            for batch in torch.randperm(len(x), generator=generator).split(settings.batch_size):
                updates.zero_grad()
                loss(_log_odds(x[batch], parameters, dropout, generator), labels[batch]).backward()
                if clip_norm < float("inf"):
                    torch.nn.utils.clip_grad_norm_(parameters, clip_norm)
                updates.step()
            with torch.no_grad():
                watched = float(stop_loss(_log_odds(x_stop, parameters, 0.0, generator), labels_stop))
            if watched < best_loss:
                best_loss, best_epoch, best = watched, epoch, [p.detach().clone() for p in parameters]
            if epoch - best_epoch >= settings.patience:
                break
    if best_epoch == 0:
        raise UnfittedError(f"partition 'stop': the loss is no finite number in any of {epoch} epochs.")
    layers = {f"{('weight', 'bias')[i % 2]}_{i // 2}": p.numpy() for i, p in enumerate(best)}
    return layers, {"epochs_run": epoch, "epoch_restored": best_epoch, "stop_loss": best_loss}


def _log_odds(x: Any, parameters: list[Any], dropout: float, generator: Any) -> Any:
    """Return the log-odds [...] of states [..., D]."""
    import torch
    from torch.nn import functional

    for layer in range(0, len(parameters), 2):
        x = functional.linear(x, parameters[layer], parameters[layer + 1])
        if layer < len(parameters) - 2:
            x = functional.relu(x)
            if dropout:  # functional.dropout draws from torch's global generator, and bernoulli_ is four times slower
                kept = torch.rand(x.shape, generator=generator) >= dropout
                x = x * (kept.float() / (1 - dropout))
    return x[..., 0]


def _initial(widths: list[int], generator: Any) -> list[Any]:
    import torch

    parameters = []
    for fan_in, fan_out in pairwise(widths):
        bound = fan_in**-0.5
        for shape in ((fan_out, fan_in), (fan_out,)):
            parameters.append(torch.empty(shape).uniform_(-bound, bound, generator=generator).requires_grad_())
    return parameters

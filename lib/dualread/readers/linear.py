"""Linear maps of hidden states: standardization, the affine layer, and the logistic regression of P-State and P-Visual.

Torch runs on the CPU and on one thread. Every random number comes from the reader's own generator.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from dualread.errors import UnfittedError
from dualread.progress import track
from dualread.readers.base import Answers, Examples, Weights
from dualread.readers.calibrated import temperature_notes
from dualread.readers.settings import LinearSettings

# The length of einsum's buffer. It adds up a longer row in pieces, but in one pass where the row is alone, and the two
# round differently.
_BUFFER = 8192


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread: sums then have one order, and small layers run faster than on contending threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def fit_standardization(features: np.ndarray) -> dict[str, np.ndarray]:
    """Return the "mean" and the "scale" of every column of `features` [n, D], float64 [D].

    The scale is the population standard deviation, and 1 for a constant column. States that are not finite, as after an
    overflow, are an UnfittedError.
    """
    if n_bad := int(np.count_nonzero(~np.isfinite(features).all(axis=1))):
        raise UnfittedError(f"the hidden states of {n_bad} of {len(features)} answers hold NaN or infinite values")
    from sklearn.preprocessing import StandardScaler  # slow to load, and a fitted reader does not need it

    scaler = StandardScaler().fit(features.astype(np.float64))
    return {"mean": np.asarray(scaler.mean_), "scale": np.asarray(scaler.scale_)}


def standardized(features: np.ndarray, tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return (features - mean) / scale as float64 [n, D]."""
    return (features.astype(np.float64) - tensors["mean"]) / tensors["scale"]


def affine(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return x weight^T + bias as float64 [n, K], for x [n, D], weight [K, D] and bias [K].

    It uses `einsum` because the result for a row must not depend on the other rows, as it does in a matrix product.
    """
    columns = [slice(start, start + _BUFFER) for start in range(0, x.shape[1], _BUFFER)]
    products = sum(np.einsum("nd,kd->nk", x[:, part], weight[:, part].astype(np.float64)) for part in columns)
    return products + bias.astype(np.float64)


def fit_linear(
    features: np.ndarray, correct: np.ndarray, offset: np.ndarray, settings: LinearSettings
) -> dict[str, np.ndarray]:
    """Fit a logistic regression on standardized features [n, D] by full-batch Adam, starting from zero.

    The loss is the mean binary cross-entropy of sigmoid(offset + x w + b) plus l2 * ||w||^2, with log-odds `offset` [n]
    that stay fixed. The bias is not penalized and classes are not weighted. Adam has betas (0.9, 0.999) and epsilon
    1e-8. The result has "mean" and "scale", float64 [D]; "weight", float64 [1, D]; "bias", float64 [1].
    """
    import torch
    from torch.nn import functional

    tensors = fit_standardization(features)
    # In float64, because Adam divides by the size of the gradient. P-Visual's bias starts with a gradient near 0, since
    # P-State has fitted it, and rounding that gradient to float32 moved log-odds by 3e-3.
    with one_thread():
        x = torch.from_numpy(standardized(features, tensors))
        z = torch.from_numpy(correct.astype(np.float64))
        fixed = torch.from_numpy(offset.astype(np.float64))
        weight, bias = (torch.zeros(size, dtype=torch.float64, requires_grad=True) for size in (x.shape[1], 1))
        optimizer = torch.optim.Adam([weight, bias], lr=settings.learning_rate, betas=(0.9, 0.999), eps=1e-8)
        for _ in track(range(settings.steps), settings.steps, "fitting (steps)"):
            optimizer.zero_grad()
            cross_entropy = functional.binary_cross_entropy_with_logits(fixed + x @ weight + bias, z)
            (cross_entropy + settings.l2 * weight.square().sum()).backward()
            optimizer.step()
    return tensors | {"weight": weight.detach().numpy()[np.newaxis], "bias": bias.detach().numpy()}


def fit_linear_probe(examples: Examples, states: Callable[[Answers], np.ndarray], settings: LinearSettings) -> Weights:
    """Fit weights on the `states` of the answers of `fit`, and the temperature on those of `calibration`."""
    fitted, calibration = (examples.require(role, both_classes=True) for role in ("fit", "calibration"))
    tensors = fit_linear(states(fitted.answers), fitted.correct, np.zeros(len(fitted)), settings)
    log_odds = linear_log_odds(states(calibration.answers), tensors)
    return Weights(tensors=tensors, notes=temperature_notes(log_odds, calibration))


def linear_log_odds(features: np.ndarray, tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return x w + b as float64 [n] for features [n, D]."""
    return affine(standardized(features, tensors), tensors["weight"], tensors["bias"])[:, 0]

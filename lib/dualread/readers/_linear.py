"""The linear proxy that P-State and P-Visual share: logistic regression by full-batch Adam from zero.

Loss: mean binary cross-entropy of sigmoid(offset + x w + b), plus l2 * ||w||^2; the bias is not penalized and classes
are not weighted. Adam with betas (0.9, 0.999) and epsilon 1e-8, in float64: it divides by the gradient's size, so
rounding a gradient near 0 (P-Visual's bias starts there, P-State having fitted it) moved log-odds by 3e-3 in float32.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dualread.readers._standardize import fit_standardization, standardized
from dualread.readers._torch import affine, one_thread


def fit_linear(
    features: np.ndarray, correct: np.ndarray, offset: np.ndarray, settings: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Fit on features [n, D], labels bool [n] and fixed log-odds `offset` [n].

    Returns:
        "mean" and "scale", float64 [D]; "weight", float64 [1, D]; "bias", float64 [1].
    """
    import torch
    from torch.nn import functional

    tensors = fit_standardization(features)
    with one_thread():
        x = torch.from_numpy(standardized(features, tensors))
        z = torch.from_numpy(correct.astype(np.float64))
        fixed = torch.from_numpy(offset.astype(np.float64))
        weight, bias = (torch.zeros(size, dtype=torch.float64, requires_grad=True) for size in (x.shape[1], 1))
        optimizer = torch.optim.Adam([weight, bias], lr=settings["learning_rate"], betas=(0.9, 0.999), eps=1e-8)
        for _ in range(settings["steps"]):
            optimizer.zero_grad()
            cross_entropy = functional.binary_cross_entropy_with_logits(fixed + x @ weight + bias, z)
            (cross_entropy + settings["l2"] * weight.square().sum()).backward()
            optimizer.step()
    return tensors | {"weight": weight.detach().numpy()[np.newaxis], "bias": bias.detach().numpy()}


def linear_log_odds(features: np.ndarray, tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return x w + b as float64 [n] for features [n, D]."""
    return affine(standardized(features, tensors), tensors["weight"], tensors["bias"])[:, 0]

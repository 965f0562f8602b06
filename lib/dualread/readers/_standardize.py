"""Standardization of hidden states: mean and standard deviation of the fit partition, in float64."""

from collections.abc import Mapping

import numpy as np


def fit_standardization(features: np.ndarray) -> dict[str, np.ndarray]:
    """Return {"mean", "scale"}, float64 [D], of `features` [n, D]; population standard deviation, 1 where constant."""
    from sklearn.preprocessing import StandardScaler  # it takes a second to load, and a fitted reader does without

    scaler = StandardScaler().fit(features.astype(np.float64))
    return {"mean": np.asarray(scaler.mean_), "scale": np.asarray(scaler.scale_)}


def standardized(features: np.ndarray, tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return (features - mean) / scale as float64 [n, D]."""
    return (features.astype(np.float64) - tensors["mean"]) / tensors["scale"]

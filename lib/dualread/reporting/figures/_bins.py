"""The bins of a reliability diagram: number of answers, share of correct ones, and the interval of that share."""

from collections.abc import Iterable
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from dualread.evaluation.metrics.calibration_error import N_BINS, bins

# A bin with fewer clusters is drawn as weak: the interval of a share of one half is then wider than .5.
FEW_CLUSTERS = 10
_Z = NormalDist().inv_cdf(0.975)

COLUMNS = {
    "bin": pl.Int64,
    **dict.fromkeys(("from", "to"), pl.Float64),
    **dict.fromkeys(("n", "n_clusters"), pl.Int64),
    **dict.fromkeys(("mean_confidence", "share_correct", "low", "high"), pl.Float64),
}


def bins_of(answers: pl.DataFrame) -> list[dict[str, Any]]:
    """Return one row per bin of the ECE, empty bins included; the keys are `COLUMNS`.

    `low` and `high` are the ends of the 95% Wilson interval of the share of correct answers. Answers on one image are
    not independent, and with several seeds the same question is there several times; so the interval uses the number
    of distinct images as the number of observations. That is cautious: answers on one image are rarely all alike. An
    empty bin has null for the mean confidence, the share and the interval.

    Args:
        answers: image_id (string), confidence (float64 in [0, 1]), correct (bool); one row per answer.
    """
    ordered = answers.sort("confidence", "correct")  # so that sums do not depend on the order of the rows
    confidence, correct = ordered["confidence"].to_numpy(), ordered["correct"].to_numpy()
    index = bins(confidence)
    n = np.bincount(index, minlength=N_BINS)
    confident = np.bincount(index, weights=confidence, minlength=N_BINS)
    right = np.bincount(index, weights=correct, minlength=N_BINS)
    images = _distinct_clusters(index, ordered["image_id"])
    return [
        {
            "bin": k,
            "from": k / N_BINS,
            "to": (k + 1) / N_BINS,
            "n": int(n[k]),
            "n_clusters": images[k],
            **_shares(confident[k] / n[k], right[k] / n[k], images[k]),
        }
        if n[k]
        else {"bin": k, "from": k / N_BINS, "to": (k + 1) / N_BINS, "n": 0, "n_clusters": 0}
        for k in range(N_BINS)
    ]


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return the ends of the 95% Wilson score interval of a share among `n` >= 1 observations, within [0, 1].

    References:
        Wilson, Probable Inference, the Law of Succession, and Statistical Inference, 1927.
    """
    shrink = 1 + _Z**2 / n
    middle = (share + _Z**2 / (2 * n)) / shrink
    half = _Z * sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2)) / shrink
    return max(0.0, middle - half), min(1.0, middle + half)


def _distinct_clusters(index: np.ndarray, image_ids: Iterable[str]) -> list[int]:
    seen: list[set[str]] = [set() for _ in range(N_BINS)]
    for k, image_id in zip(index.tolist(), image_ids, strict=True):
        seen[k].add(image_id)
    return [len(images) for images in seen]


def _shares(mean_confidence: float, share: float, n_clusters: int) -> dict[str, float]:
    low, high = wilson(share, n_clusters)
    return {"mean_confidence": mean_confidence, "share_correct": share, "low": low, "high": high}

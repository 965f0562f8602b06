"""Aggregations of confidence for lm-eval and lmms-eval, which compute one number from what all documents gave.

Each takes what `process_results` of a task returned for every document: a confidence from 0 to 1, and whether the
answer is correct; and, if documents share images, the image's name, so that what is said about chance counts each image
once. Of multiple choice, `choice_confidence` makes the first two from the log-likelihoods of the options.
docs/harnesses.md shows a task with its YAML. Nothing of either harness is imported. A metric without a value is NaN, as
theirs are, and a warning says why: an error would cost the whole run.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dualread.errors import UndefinedMetricError
from dualread.evaluation import metrics

__all__ = ["aurc", "auroc", "brier", "choice_confidence", "ece", "ece_noise_floor", "squared_calibration_error"]

_LOG = logging.getLogger(__name__)
Graded = tuple[float, int] | tuple[float, int, str]


def choice_confidence(results: Sequence[Any], gold: int, *, lengths: Sequence[int] | None = None) -> tuple[float, int]:
    """Return the probability of the likeliest option among all options, and whether it is the right one (1 or 0).

    Args:
        results: Of each option, its log-likelihood, or a pair that begins with it, as lm-eval gives.
        gold: The number of the right option, from 0.
        lengths: Where likelihoods are compared per character or token, how many each option has.

    Raises:
        ValueError: There is no option, or `gold` is none of them.
    """
    likelihoods = np.array([pair[0] if isinstance(pair, tuple | list) else pair for pair in results], dtype=np.float64)
    if not 0 <= gold < len(likelihoods):
        raise ValueError(f"gold: {gold}, expected the number of one of {len(likelihoods)} options, from 0.")
    if lengths is not None:
        likelihoods = likelihoods / np.asarray(lengths, dtype=np.float64)
    shares = np.exp(likelihoods - likelihoods.max())
    return float(shares.max() / shares.sum()), int(likelihoods.argmax() == gold)


def auroc(items: Sequence[Graded]) -> float:
    """Return the probability that a correct answer has more confidence than a wrong one."""
    return _computed(metrics.auroc, items)


def aurc(items: Sequence[Graded]) -> float:
    """Return the mean error rate of the k most confident answers, over all k; lower is better."""
    return _computed(metrics.aurc, items)


def brier(items: Sequence[Graded]) -> float:
    """Return the mean squared difference of confidence and correctness; lower is better."""
    return _computed(metrics.brier, items)


def ece(items: Sequence[Graded]) -> float:
    """Return the calibration error over 15 bins; up to `ece_noise_floor` it may be chance."""
    return _computed(metrics.ece, items)


def ece_noise_floor(items: Sequence[Graded]) -> float:
    """Return the calibration error that calibrated confidences like these stay below in 95% of samples."""
    images, numbers = np.unique(_images(items), return_inverse=True)
    return _computed(metrics.ece_noise_floor, items, numbers, len(images), ("lm-eval",))


def squared_calibration_error(items: Sequence[Graded]) -> float:
    """Return the squared calibration error without the part of chance: 0 on average if calibrated; can be below 0."""
    return _computed(metrics.squared_calibration_error, items, _images(items))


def _images(items: Sequence[Graded]) -> list[str]:
    """Return the image of each document; a document without one counts as an image of its own."""
    return [str(item[2]) if len(item) > 2 else f"document {row}" for row, item in enumerate(items)]


def _computed(metric: Callable[..., float], items: Sequence[Graded], *more: Any) -> float:
    try:
        return float(metric([item[0] for item in items], [item[1] for item in items], *more))
    except UndefinedMetricError as error:
        _LOG.warning("%s has no value: %s", metric.__name__, error)
        return float("nan")

"""How many calibration images it takes to certify a threshold, before anybody collects them.

Validation sets are simulated. Confidences are calibrated: an answer with confidence c is right with probability c, and
the log-odds of c are normally distributed, with the mean and the deviation that give the expected accuracy and AUROC. A
quarter of the variance of the log-odds belongs to the image, and a quarter of the luck, so that answers to one image
depend on each other. Every image has the same number of answers. Where confidences are too high, or images share more,
more images are needed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy  # loads its submodules when they are first used
from scipy.special import expit, ndtr, ndtri

from dualread.evaluation.metrics.risk_control import DELTA, certifies_any, risk_p_values, smallest_certified
from dualread.seeding import generator

ENOUGH = 0.8  # "N images certify something" means: in this share of validation sets
LARGEST = 50_000  # number of answers of the largest simulated validation set

REPETITIONS = 60  # number of simulated validation sets of each size

_OF_IMAGE = 0.25  # share of the variance that answers to one image have in common
_SMALLEST = 10
_GRID = ndtri((np.arange(2000) + 0.5) / 2000)  # stands for the normal distribution


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What somebody expects of a method and of the images.

    Attributes:
        accuracy: Share of right answers, in (0, 1).
        auroc: AUROC of the confidence, in (.5, 1).
        per_image: Number of answers to each image.
        max_per_image: Largest number of answers to an image of the source; at least `per_image`.
    """

    accuracy: float
    auroc: float
    per_image: int = 1
    max_per_image: int = 1

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            ValueError: A value is out of range.
        """
        if not 0.0 < self.accuracy < 1.0:
            raise ValueError(f"accuracy: {self.accuracy:g}, expected a share between 0 and 1.")
        if not 0.5 < self.auroc < 1.0:
            raise ValueError(f"auroc: {self.auroc:g}, expected a number between .5 (chance) and 1.")
        if not 1 <= self.per_image <= self.max_per_image:
            raise ValueError(
                f"per_image: {self.per_image}, expected 1 or more, and not more than max_per_image"
                f" ({self.max_per_image})."
            )


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What validation sets of one size certify.

    Attributes:
        images: Number of validation images.
        certified: Share of the simulated validation sets that certify any threshold.
        kept: Mean share of new answers that the certified threshold keeps; 0 where there is none.
    """

    images: int
    certified: float
    kept: float


@lru_cache(maxsize=256)
def images_needed(expected: Expected, *, target_risk: float, delta: float = DELTA) -> int | None:
    """Return the number of validation images with which `ENOUGH` of the validation sets certify some threshold.

    Two leading digits; another simulation of 60 validation sets would move it by a tenth or two.

    Args:
        expected: Accuracy, AUROC, and number of answers per image.
        target_risk: Largest error rate of the kept answers, in (0, 1).
        delta: Largest probability of a wrong statement, in (0, 1).

    Returns:
        The number of images; None if `LARGEST` answers are not enough.
    """
    low = high = _SMALLEST
    while not _enough(expected, high, target_risk, delta):
        low, high = high, 2 * high
        if high * expected.per_image > LARGEST:
            return None
    for _ in range(3 if low < high else 0):
        middle = round((low * high) ** 0.5)
        if _enough(expected, middle, target_risk, delta):
            high = middle
        else:
            low = middle
    unit = 10 ** max(len(str(high)) - 2, 0)
    return -(-high // unit) * unit  # two leading digits


def planned(expected: Expected, *, target_risk: float, delta: float = DELTA) -> list[Planned]:
    """Return what validation sets certify whose sizes are a quarter, half, 1, 2 and 4 times the number needed.

    Args:
        expected: Accuracy, AUROC, and number of answers per image.
        target_risk: Largest error rate of the kept answers, in (0, 1).
        delta: Largest probability of a wrong statement, in (0, 1).

    Returns:
        One entry per size, ascending; none if no simulated number of images is enough.
    """
    needed = images_needed(expected, target_risk=target_risk, delta=delta)
    sizes = () if needed is None else sorted({max(round(needed * factor), 1) for factor in (0.25, 0.5, 1, 2, 4)})
    plans = []
    for n in sizes:
        if n * expected.per_image <= LARGEST:
            kept = list(_kept(expected, n, target_risk, delta))
            shares = [share for share in kept if share is not None]
            plans.append(Planned(images=n, certified=len(shares) / len(kept), kept=sum(shares) / len(kept)))
    return plans


def _enough(expected: Expected, n_images: int, target_risk: float, delta: float) -> bool:
    """Return whether `ENOUGH` of the validation sets certify some threshold; simulates until it is clear."""
    allowed = round((1 - ENOUGH) * REPETITIONS)
    risks = {"target_risk": target_risk, "delta": delta, "max_per_image": expected.max_per_image}
    certified = (certifies_any(*answers, **risks) for answers in _validation_sets(expected, n_images))
    n_certified = n_failed = 0
    while n_failed <= allowed and n_certified < REPETITIONS - allowed:
        is_certified = next(certified)
        n_certified, n_failed = n_certified + is_certified, n_failed + (not is_certified)
    return n_failed <= allowed


def _kept(expected: Expected, n_images: int, target_risk: float, delta: float) -> Iterator[float | None]:
    """Yield, for each simulated validation set, what share of new answers its threshold keeps; None without one."""
    mean, deviation = _log_odds(expected.accuracy, expected.auroc)
    new = expit(mean + deviation * _GRID)
    images = np.repeat(np.arange(n_images), expected.per_image)
    for confidence, correct in _validation_sets(expected, n_images):
        levels, p = risk_p_values(
            confidence.ravel(), correct.ravel(), images, target_risk=target_risk, max_per_image=expected.max_per_image
        )
        certified = smallest_certified(levels, p, target_risk=target_risk, delta=delta)
        yield None if certified is None else float((new >= certified).mean())


def _validation_sets(expected: Expected, n_images: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield confidences, float64 [images, answers], and whether each answer is right."""
    mean, deviation = _log_odds(expected.accuracy, expected.auroc)
    for repetition in range(REPETITIONS):
        # Larger validation sets have the images of the smaller ones, so that a comparison of sizes has less noise.
        rng = generator("planning", repetition)
        draws = rng.standard_normal((n_images, 2 + 2 * expected.per_image))
        shared, single = draws[:, :2, np.newaxis], draws[:, 2:].reshape(n_images, 2, -1)
        normal = np.sqrt(_OF_IMAGE) * shared + np.sqrt(1 - _OF_IMAGE) * single
        confidence = expit(mean + deviation * normal[:, 0])
        yield confidence, ndtr(normal[:, 1]) < confidence


@lru_cache(maxsize=256)
def _log_odds(accuracy: float, auroc: float) -> tuple[float, float]:
    """Return mean and deviation of the log-odds with which calibrated confidences have this accuracy and AUROC."""

    def mean(deviation: float) -> float:
        return scipy.optimize.root_scalar(
            lambda shift: float(expit(shift + deviation * _GRID).mean()) - accuracy, bracket=(-500.0, 500.0)
        ).root

    def auroc_of(deviation: float) -> float:
        right = expit(mean(deviation) + deviation * _GRID)  # ascending
        wrong = 1.0 - right
        below = np.cumsum(wrong) - wrong / 2
        return float(right @ below / (right.sum() * wrong.sum()))

    least, most = 1e-3, 50.0
    if auroc_of(least) >= auroc or auroc_of(most) <= auroc:
        chosen = least if auroc_of(least) >= auroc else most
    else:
        chosen = scipy.optimize.root_scalar(
            lambda deviation: auroc_of(deviation) - auroc, bracket=(least, most), xtol=1e-6
        ).root
    return mean(chosen), chosen

"""Do the confidences of served answers drift from those of the validation answers? A test, and what it could notice.

The distance of two samples is the largest difference of their distribution functions (Kolmogorov and Smirnov). Answers
about one image are not independent, so that those of an image are exchanged together: p is the share of exchanges that
are at least as far apart. A p without a power says little: with few answers, no drift is ever noticed. So the power
is estimated as well, for a drift that matters: served answers are drawn from the validation images, with log-odds that
are lower by a given amount, and the share of draws is counted that the test notices.

References:
    The permutation test: E. L. Lehmann and J. P. Romano, Testing Statistical Hypotheses, section 17.2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from dualread.errors import ArtifactError, UndefinedMetricError
from dualread.seeding import generator

VALIDATION = "validation.csv"  # of a bundle: confidences without names
ALPHA = 0.05
SHIFT = 0.5  # of log-odds, by default: .80 becomes .71
FEWEST_IMAGES = 20  # in either sample; with fewer, exchanges are too few to say anything
_EXCHANGES, _DRAWS = 1999, 400


class ConfidenceSample(NamedTuple):
    """Confidences in [0, 1], float64 [n], and the number of each one's image, int64 [n]."""

    confidence: np.ndarray
    image: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Drift:
    """What the test says.

    Attributes:
        distance: The largest difference of the two distribution functions.
        p: The share of exchanges of images that are at least as far apart, in (0, 1].
        power: The probability to notice a drift by `shift`, at the level `ALPHA`.
        shift: By how much log-odds are lower in this drift.
        means: The mean confidence of the validation answers, of the served ones, and of the former after the drift.
        n: The numbers of validation answers and of served ones.
        n_images: The numbers of their images.
    """

    distance: float
    p: float
    power: float
    shift: float
    means: tuple[float, float, float]
    n: tuple[int, int]
    n_images: tuple[int, int]


def drift(before: ConfidenceSample, now: ConfidenceSample, *, shift: float = SHIFT) -> Drift:
    """Compare the confidences of served answers, `now`, with those of the validation answers, `before`.

    The power is that for a drift by which log-odds are lower by `shift` > 0.

    Raises:
        UndefinedMetricError: One of the samples has fewer than `FEWEST_IMAGES` images, or all confidences are equal.
    """
    n_images = tuple(len(np.unique(sample.image)) for sample in (before, now))
    for name, count in zip(("validation", "served"), n_images, strict=True):
        if count < FEWEST_IMAGES:
            raise UndefinedMetricError(
                f"the {name} answers are about {count} images, and with fewer than {FEWEST_IMAGES} there is no test"
            )
    pooled = ConfidenceSample(
        np.concatenate([before.confidence, now.confidence]),
        np.concatenate([_numbered(before.image), _numbered(now.image) + n_images[0]]),
    )
    if np.ptp(pooled.confidence) == 0:
        raise UndefinedMetricError("all confidences are equal")
    exchanged = _exchanged(pooled, n_images[0], generator("drift", "exchanges", 0))
    distance = _distance(before.confidence, now.confidence)
    limit = np.quantile(exchanged, 1 - ALPHA, method="higher")
    return Drift(
        distance=distance,
        p=(1 + int((exchanged >= distance - 1e-12).sum())) / (1 + len(exchanged)),
        power=_power(before, n_images[1], limit, shift, generator("drift", "draws", 0)),
        shift=shift,
        means=(float(before.confidence.mean()), float(now.confidence.mean()), float(_lower(before, shift).mean())),
        n=(len(before.confidence), len(now.confidence)),
        n_images=(n_images[0], n_images[1]),
    )


def _exchanged(pooled: ConfidenceSample, n_before: int, rng: np.random.Generator) -> np.ndarray:
    """Return the distances of samples in which each image is where chance puts it."""
    n = int(pooled.image.max()) + 1
    distances = np.empty(_EXCHANGES)
    for k in range(_EXCHANGES):
        first = np.zeros(n, bool)
        first[rng.permutation(n)[:n_before]] = True
        chosen = first[pooled.image]
        distances[k] = _distance(pooled.confidence[chosen], pooled.confidence[~chosen])
    return distances


def _power(before: ConfidenceSample, n_images: int, limit: float, shift: float, rng: np.random.Generator) -> float:
    """Return the share of draws of so many images, with lower log-odds, whose distance is above `limit`."""
    rows = [np.flatnonzero(before.image == image) for image in np.unique(before.image)]
    lower, noticed = _lower(before, shift), 0
    for _ in range(_DRAWS):
        drawn = np.concatenate([rows[i] for i in rng.integers(len(rows), size=n_images)])
        noticed += _distance(before.confidence, lower[drawn]) > limit
    return noticed / _DRAWS


def _lower(sample: ConfidenceSample, shift: float) -> np.ndarray:
    """Return the confidences with log-odds that are lower by `shift`: p / (p + (1 - p) exp(shift))."""
    p = sample.confidence
    return p / (p + (1 - p) * np.exp(shift))


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the largest difference of the distribution functions of two samples; ties count once."""
    first, second = np.sort(first), np.sort(second)
    at = np.concatenate([first, second])
    shares = (np.searchsorted(sample, at, side="right") / len(sample) for sample in (first, second))
    return float(np.abs(next(shares) - next(shares)).max())


def _numbered(images: np.ndarray) -> np.ndarray:
    return np.unique(images, return_inverse=True)[1]


def write_validation(folder: Path, confidences: Mapping[str, tuple[Sequence[float], Sequence[str]]]) -> None:
    """Write the confidences of the validation answers and the images' ids of each method, as numbers without names."""
    tables = [
        pl.DataFrame({"method": method, "image": np.unique(images, return_inverse=True)[1], "confidence": values})
        for method, (values, images) in confidences.items()
    ]
    # Sorted by confidence, so that the order says nothing about the questions.
    pl.concat(tables).sort("method", "confidence", "image").write_csv(folder / VALIDATION)


def read_validation(folder: Path, method: str) -> ConfidenceSample:
    """Return what `write_validation` wrote about a method.

    Raises:
        ArtifactError: There is no such file, it is damaged, or it has no confidences of this method.
    """
    file = folder / VALIDATION
    try:
        rows = pl.read_csv(file, schema={"method": pl.String, "image": pl.Int64, "confidence": pl.Float64})
        rows = rows.filter(pl.col("method") == method)
        if not len(rows) or not rows["confidence"].is_between(0, 1).all() or rows.null_count().sum_horizontal()[0]:
            raise ValueError(f"no confidences from 0 to 1 of {method!r}")
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise ArtifactError(
            f"{file}: cannot be read ({error}). Expected the confidences of the validation answers: export the bundle"
            " again, with this version."
        ) from error
    return ConfidenceSample(rows["confidence"].to_numpy(), rows["image"].to_numpy())

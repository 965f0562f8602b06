"""What is known about an estimate on other images: replicates of a metric of answers, or a mean over pairs.

Both forms are linear: a mean over seeds, and a difference of two methods, is computed on the same resamples or on the
same left-out images, so that what the methods share cancels.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import sqrt

import numpy as np
import scipy  # loads its submodules when they are first used

from dualread.evaluation.pair_metrics import PairValues
from dualread.evaluation.statistics.bootstrap import including, interval
from dualread.evaluation.statistics.jackknife import PairShifts, Variance, mean_variance, pair_shifts
from dualread.evaluation.statistics.p_values import EQUAL, P, p_value
from dualread.evaluation.statistics.t_intervals import (
    Limits,
    difference_interval,
    difference_p_value,
    logit_interval,
    smallest_p_value,
)

_NORMAL = 1.959963984540054  # the 97.5th percentile

# The name under which the images of stored pairs are found.
PAIR_IMAGES = "pair_images"

# The replicates, or the pairs, of one run's <dataset>/<split>/<metric>.
Read = Callable[[tuple[str, int, str], str], "np.ndarray | PairValues"]


@dataclass(frozen=True, kw_only=True)
class Resampled:
    """Replicates of an estimate.

    Attributes:
        replicates: float64 [B], NaN where a replicate has no value.
        n_images: The number of images that can carry a difference.
        is_skewed: Whether few images can make differences lopsided. Percentiles alone would then find one in up to 8%
            of samples of two equal methods, so that it also has to be far from 0 by its standard deviation.
    """

    replicates: np.ndarray
    n_images: int
    is_skewed: bool = False

    def minus(self, other: "Sample", /) -> "Resampled":
        """Return the sample of the difference, of two estimates on the same images."""
        assert isinstance(other, Resampled)
        replicates, n_images = self.replicates - other.replicates, min(self.n_images, other.n_images)
        return Resampled(replicates=replicates, n_images=n_images, is_skewed=self.is_skewed)

    def limits(self, estimate: float, is_signed: bool, /) -> Limits:
        """Return the 95% interval of the estimate; None if no replicate has a value."""
        percentiles = interval(self.replicates)
        low, high = including(percentiles.low, percentiles.high, estimate)
        if low is None or high is None:
            return None
        half = _NORMAL * sqrt(self._variance()) if is_signed and self.is_skewed else 0.0
        return min(low, estimate - half), max(high, estimate + half)

    def p(self, estimate: float, /) -> P | None:
        """Return the two-sided p-value of "no difference"; no value that the images cannot give."""
        p = p_value(self.replicates)
        if p is None:
            return None
        smallest = smallest_p_value(self.n_images)
        if self.is_skewed and abs(estimate) > EQUAL:
            steps = abs(estimate) / max(sqrt(self._variance()), sys.float_info.min)
            smallest = max(smallest, 2.0 * float(scipy.special.ndtr(-steps)))
        return p if p.value >= smallest else P(smallest, at_most=False)

    def variance(self) -> Variance | None:
        """Return the variance over images, None if it is not known; its df are those of a mean over the images."""
        if np.count_nonzero(~np.isnan(self.replicates)) < 2:
            return None
        df = max(self.n_images - 1.0, 0.0)
        return Variance(value=self._variance(), df=df, n=max(float(self.n_images), 1.0))

    def carriers(self) -> int:
        """Return the number of images that can carry a difference."""
        return self.n_images

    def n_undefined(self) -> int:
        """Return the number of replicates without a value."""
        return int(np.count_nonzero(np.isnan(self.replicates)))

    def _variance(self) -> float:
        """Return the variance of the replicates, which have the spread of t; 0 with fewer than two."""
        defined = self.replicates[~np.isnan(self.replicates)]
        return float(np.var(defined, ddof=1)) if len(defined) > 1 else 0.0


@dataclass(frozen=True, kw_only=True)
class _DataSet:
    """The pairs of one data set.

    Attributes:
        shifts: Of the estimate.
        parts: What each pair adds to the estimate, and its weight, float64 [2, n]; of a difference, both differences.
        images: The pairs' source and donor images, int64 [2, n].
    """

    shifts: PairShifts
    parts: np.ndarray
    images: np.ndarray


@dataclass(frozen=True, kw_only=True)
class OverPairs:
    """The mean over data sets of means over pairs, with the methods of `Resampled`."""

    datasets: tuple[_DataSet, ...]

    def minus(self, other: "Sample", /) -> "OverPairs":
        """Return the sample of the difference."""
        assert isinstance(other, OverPairs)
        differences = (
            replace(mine, shifts=mine.shifts - others.shifts, parts=mine.parts - others.parts)
            for mine, others in zip(self.datasets, other.datasets, strict=True)
        )
        return OverPairs(datasets=tuple(differences))

    def limits(self, estimate: float, is_signed: bool, /) -> Limits:
        """Return the 95% interval of the estimate."""
        return (difference_interval if is_signed else logit_interval)(estimate, self.variance())

    def p(self, estimate: float, /) -> P | None:
        """Return the two-sided p-value of "no difference"."""
        p = difference_p_value(estimate, self.variance(), self.carriers())
        return None if p is None else P(p, at_most=False)

    def variance(self) -> Variance:
        """Return the variance over images; data sets are independent."""
        return mean_variance([dataset.shifts.variance() for dataset in self.datasets])

    def carriers(self) -> int:
        """Return how many images carry a difference, on the shorter side of every data set."""
        carriers = 0
        for dataset in self.datasets:
            carrying = dataset.images[:, (np.abs(dataset.parts) > _EQUAL).any(axis=0)]
            carriers += min(len(np.unique(side)) for side in carrying)
        return carriers

    def n_undefined(self) -> int:
        """Return 0: nothing is resampled."""
        return 0


# An estimate's distribution over images.
Sample = Resampled | OverPairs
# Means over seeds round, so that what two equal methods add can differ by about 1e-18.
_EQUAL = 1e-15


def mean_sample(runs: Sequence[Sequence[np.ndarray | PairValues]], *, n_images: int, is_skewed: bool = False) -> Sample:
    """Return the sample of the mean over data sets of means over seeds.

    `runs` has for each data set what `Read` returns for each seed, all of one kind; `n_images` can carry a difference
    (pairs are counted themselves), and `is_skewed` is that of `Resampled`.
    """
    arrays = [[run for run in seeds if isinstance(run, np.ndarray)] for seeds in runs]
    if all(arrays):
        return Resampled(replicates=_mean([_mean(seeds) for seeds in arrays]), n_images=n_images, is_skewed=is_skewed)
    return OverPairs(datasets=tuple(_data_set([run for run in seeds if isinstance(run, PairValues)]) for seeds in runs))


def seed_by_image(samples: Sequence[Sample]) -> float:
    """Return the part of the variance of a mean over K seeds that seeds and images have together; 0 if not known.

    What all seeds share on an image cancels in the difference of two of them, whose variance is that of 2 K such parts.
    """
    k = len(samples)
    variances = [first.minus(second).variance() for first, second in combinations(samples, 2)]
    parts = [0.0 if variance is None else variance.value for variance in variances]
    return sum(parts) / (k**2 * (k - 1)) if parts else 0.0


def _data_set(seeds: Sequence[PairValues]) -> _DataSet:
    first, share = seeds[0], 1.0 / len(seeds)
    shifts = [pair_shifts(run.values, run.source, run.donor, run.counts) for run in seeds]
    total = shifts[0]
    for more in shifts[1:]:
        total += more
    parts = np.zeros((2, len(first.values)))
    for run in seeds:
        used = ~np.isnan(run.values)
        counts = np.where(used, run.counts, 0.0)
        scale = share / counts.sum()
        parts += [np.where(used, run.values, 0.0) * scale, counts * scale]
    return _DataSet(shifts=total * share, parts=parts, images=np.stack([first.source, first.donor]))


def _mean(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return sum(arrays[1:], start=arrays[0]) / len(arrays)

"""Cluster jackknife: the sampling variance of an estimate, from what it would be without each image.

Leaving out image g with all its rows moves the estimate by s_g. The variance is (G - 1) / G times the sum of s_g**2
over the G images that have rows. A difference of two methods, and a mean over seeds, are linear: their shifts are the
same combination of shifts, so that what methods share on the same images cancels.

A pair of images depends on every pair with which it shares an image, be it as source or as donor. Leaving out each
image, in whatever role, counts a pair once with each of its two images. Therefore V = V_images - V_pairs, where V_pairs
leaves out the two images' common pairs instead. If no image has both roles, this is V_source + V_donor - V_pair. It can
be small or negative by chance; V is at least half of V_pairs.

References:
    Cameron, Gelbach, Miller, Robust Inference With Multiway Clustering, 2011.
    Aronow, Samii, Assenova, Cluster-Robust Variance Estimation for Dyadic Data, 2015.
    MacKinnon, Nielsen, Webb, Jackknife Inference With Two-Way Clustering, 2024.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, hypot, log, sqrt
from statistics import variance
from typing import Self

import numpy as np
import scipy  # loads its submodules when they are first used

from dualread.evaluation.statistics.clusters import InEffect, effective_number

# A mean over seeds rounds, so that shifts of 0 can become about 1e-16. One pair of a million shifts a mean by 5e-7.
_ROUNDED = 1e-24

__all__ = ["PairShifts", "Variance", "mean_variance", "over_retrained_seeds", "pair_shifts"]


@dataclass(frozen=True, kw_only=True)
class Variance:
    """The sampling variance of an estimate.

    Attributes:
        value: The variance, >= 0.
        df: Degrees of freedom of its part over images, >= 0; with 0 it cannot be estimated.
        n: Number of independent images that the rows are worth: the smaller of sources and donors, each divided by how
            unequally the pairs are spread over them.
        between: The part of `value` that is between seeds, >= 0.
        df_between: Degrees of freedom of this part; 0 without one.
    """

    value: float
    df: float
    n: float
    between: float = 0.0
    df_between: float = 0.0

    def quantile(self, tail: float) -> float:
        """Return how many standard errors an estimate exceeds with probability `tail`, in (0, .5].

        It is a quantile of Student's t. Where part of the variance is between seeds, its square is the mean of those of
        the two parts' t, weighted by the parts: with this quantile an interval covers at least as often as it says,
        whatever the parts truly are. Satterthwaite's degrees of freedom promise too much here: they are large where
        few seeds happen to be alike.

        References:
            Banerjee, On Confidence Interval for Two-Means Problem Based on Separate Estimates of Variances and
            Tabulated Values of t-Table, 1961.
        """
        return hypot(*(sqrt(part / self.value) * -float(scipy.special.stdtrit(df, tail)) for part, df in self._parts()))

    def tail(self, steps: float) -> float:
        """Return the probability with which an estimate exceeds `steps` >= 0 standard errors; inverse of `quantile`."""
        tails = [float(scipy.special.stdtr(df, -steps)) for _, df in self._parts()]
        low, high = (max(extreme(tails), sys.float_info.min) for extreme in (min, max))

        def excess(log_tail: float) -> float:
            return self.quantile(exp(log_tail)) - steps

        # Where the parts agree, rounding may put both ends on one side.
        if excess(log(low)) <= 0.0:
            return low
        if excess(log(high)) >= 0.0:
            return high
        return exp(scipy.optimize.bisect(excess, log(low), log(high)))

    def _parts(self) -> list[tuple[float, float]]:
        parts = ((self.value - self.between, self.df), (self.between, self.df_between))
        return [(part, df) for part, df in parts if part > 0.0]


@dataclass(frozen=True, kw_only=True)
class PairShifts:
    """How far the mean over pairs of images moves without each image, and without each two images' common pairs.

    Attributes:
        images: float64 [n_images]; NaN for an image without pairs in the set.
        pairs: float64 [n_couples]; NaN for two images without a pair in the set.
        n: The effective number of images on the shorter side, see `Variance.n`.
    """

    images: np.ndarray
    pairs: np.ndarray
    n: float

    def __add__(self, other: Self) -> "PairShifts":
        """Return the shifts of the sum of two estimates on the same images."""
        return PairShifts(
            images=_sum(self.images, other.images), pairs=_sum(self.pairs, other.pairs), n=min(self.n, other.n)
        )

    def __mul__(self, factor: float) -> "PairShifts":
        """Return the shifts of the estimate times `factor`."""
        return PairShifts(images=factor * self.images, pairs=factor * self.pairs, n=self.n)

    def __sub__(self, other: Self) -> "PairShifts":
        """Return the shifts of the difference of two estimates on the same images."""
        return self + other * -1.0

    def variance(self) -> Variance:
        """Return the variance of the estimate, with n - 1 degrees of freedom; none if most pairs share one image."""
        of_pairs = _variance(self.pairs)
        value = max(_variance(self.images) - of_pairs, of_pairs / 2)
        return Variance(value=value, df=0.0 if InEffect(self.n, 2).reason else self.n - 1.0, n=self.n)


def pair_shifts(
    values: np.ndarray, source: np.ndarray, donor: np.ndarray, counts: np.ndarray | float = 1.0
) -> PairShifts:
    """Return the shifts of the mean of `values` over pairs of images.

    Args:
        values: float64 [n], one value per pair; NaN for a pair outside the set that is averaged. Values are whole
            multiples of 1/2, so that their sums are exact and do not depend on the order of the rows.
        source: int [n], the pair's source image, in [0, n_images).
        donor: int [n], its donor image. An image has the same number in both roles.
        counts: float64 [n], how many values of the mean the pair's value is the sum of; by default one.

    Raises:
        ValueError: No pair is in the set.
    """
    chosen = ~np.isnan(values)
    if not chosen.any():
        raise ValueError("values: no pair is in the set, expected at least one.")
    n_images = int(max(source.max(), donor.max())) + 1
    first, second = np.minimum(source, donor), np.maximum(source, donor)
    couples = np.unique(first * n_images + second, return_inverse=True)[1]
    held, sides = values[chosen], (source[chosen], donor[chosen])
    held_counts = np.broadcast_to(counts, values.shape)[chosen].astype(np.float64)
    mean = float(held.sum()), float(held_counts.sum())
    # A pair of an image with itself is one row of this image.
    twice = np.where(sides[0] == sides[1], 0.0, 1.0)
    totals, n_values = (
        np.bincount(sides[0], weight, n_images) + np.bincount(sides[1], weight * twice, n_images)
        for weight in (held, held_counts)
    )
    n_couples = int(couples.max()) + 1
    in_couple = couples[chosen]
    return PairShifts(
        images=_shifts_of_mean(totals, n_values, mean),
        pairs=_shifts_of_mean(
            np.bincount(in_couple, held, n_couples), np.bincount(in_couple, held_counts, n_couples), mean
        ),
        n=min(effective_number(np.bincount(side, held_counts)) for side in sides),
    )


def mean_variance(parts: Sequence[Variance]) -> Variance:
    """Return the variance of the mean of independent estimates, such as those of several data sets.

    The degrees of freedom are Satterthwaite's. If no part varies, `n` bounds the mean: its distance from the end of the
    scale is largest if all of it is in the part with the fewest images.
    """
    k = len(parts)
    shares = [(part.value / k**2, part.df) for part in parts]
    if (total := sum(value for value, _ in shares)) == 0.0 or any(df == 0.0 for _, df in shares):
        df = min(df for _, df in shares)
    else:
        df = total**2 / sum(value**2 / df for value, df in shares if value > 0.0)
    return Variance(value=sum(part.value for part in parts) / k**2, df=df, n=k * min(part.n for part in parts))


def over_retrained_seeds(of_images: Variance, by_seed: Sequence[float], seed_by_image: float = 0.0) -> Variance:
    """Return the variance of a mean over seeds if the actors were retrained and other images drawn.

    Args:
        of_images: The variance of the mean over seeds, given these seeds.
        by_seed: The estimate, or the difference, of each of K >= 2 seeds. Their variance s**2 is added as s**2 / K,
            with K - 1 degrees of freedom.
        seed_by_image: The part of both that seeds and images have together, >= 0. It is taken from the images', so
            that it counts once: the rest is that of what all seeds share on an image.

    Raises:
        ValueError: There are fewer than two seeds.
    """
    k = len(by_seed)
    if k < 2:
        raise ValueError(f"by_seed: {k} seeds, expected at least 2, of which a variance can be estimated.")
    between = variance(by_seed) / k
    shared = max(of_images.value - seed_by_image, 0.0)
    return Variance(value=shared + between, df=of_images.df, n=of_images.n, between=between, df_between=k - 1.0)


def _variance(shifts: np.ndarray) -> float:
    defined = shifts[~np.isnan(shifts)]
    variance = float(np.sum(defined**2)) * (len(defined) - 1) / len(defined) if len(defined) else 0.0
    return variance if variance > _ROUNDED else 0.0


def _sum(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the sum; a cluster that has rows in one of the two only does not move the other."""
    both = np.where(np.isnan(first), 0.0, first) + np.where(np.isnan(second), 0.0, second)
    both[np.isnan(first) & np.isnan(second)] = np.nan
    return both


def _shifts_of_mean(totals: np.ndarray, counts: np.ndarray, mean_of: tuple[float, float]) -> np.ndarray:
    """Return the shifts of a mean, given the sum and the number of each cluster's values, and of all."""
    # A cluster that has all rows leaves none. Its shift is 0, and so is the variance; its degrees of freedom are 0.
    total, n = mean_of
    rest = n - counts
    mean = total / n
    without = np.divide(total - totals, rest, out=np.full(len(counts), mean), where=rest > 0)
    return np.where(counts > 0, without - mean, np.nan)

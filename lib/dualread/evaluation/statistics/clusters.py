"""Clusters of unequal size: how many equal ones they are worth, their degrees of freedom, and leaving each one out.

An estimate follows the images that hold most of its rows, so that its residual there is about 0, and resamples, or sums
of squared residuals, show less variance than there is. Leaving out each image in turn shows it: the jackknife (CR3).
Degrees of freedom follow from how unequal the images are. Of G images of equal size, the variance of a mean is
G / (G - 1) times that of residuals, and there are G - 1 degrees of freedom; so of nearly even ones.

References:
    Bell, McCaffrey, Bias Reduction in Standard Errors for Linear Regression with Multi-Stage Samples, 2002.
    MacKinnon, Nielsen, Webb, Fast and Reliable Jackknife and Bootstrap Methods for Cluster-Robust Inference, 2023.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import NamedTuple

import numpy as np

from dualread.evaluation.statistics.kernels import Kernel, linear_kernel

# Uneven images that are worth fewer equal ones have no interval. Sizes do not tell how far rows of an image depend on
# each other, on which the width hangs there: simulated intervals cover in 70 to 94% where one image of two has nearly
# all rows, and in up to 100% where three of fifty have three quarters.
_FEWEST = 6.0
# Images are uneven if they are worth less than this share of their number, and if the largest ones matter.
_EVEN_SHARE, _MANY = 0.75, 100.0
# The largest clusters are left out one by one; where there are more, the others are left out in as many groups.
_ALONE = 500


def effective_number(sizes: np.ndarray) -> float:
    """Return the number of clusters of equal size that would share the rows as unequally (Kish); 0 without rows."""
    counts = sizes.astype(np.float64)
    return float(counts.sum() ** 2 / np.sum(counts**2)) if counts.any() else 0.0


def degrees_of_freedom(sizes: np.ndarray) -> float:
    """Return the degrees of freedom of the variance of a mean over clusters; G - 1 for G clusters of equal size.

    They are tr(B)^2 / tr(B^2) with B_gh = sqrt(a_g a_h) (n_g [g = h] - n_g n_h / N) and a_g = 1 / (1 - n_g / N), the
    covariance of adjusted residual sums of independent rows. B is diagonal but for a part of rank one, so that its
    traces are sums over clusters. Clusters without rows do not count.
    """
    held = np.sort(sizes[sizes > 0]).astype(np.float64)
    if len(held) < 2:
        return 0.0
    share = held / held.sum()
    off_diagonal = share**2 / (1.0 - share)
    return float(1.0 / (np.sum(share**2) + np.sum(off_diagonal) ** 2 - np.sum(off_diagonal**2)))


def in_unit(reason: str | None, unit: str) -> str | None:
    """Return a reason about images as one about what is resampled, such as patients."""
    return reason and re.sub(r"\bimage(?=s?\b)", unit, reason)


class InEffect(NamedTuple):
    """How many images of equal size `n` images are worth (Kish), and what follows from it."""

    number: float
    n: int

    @classmethod
    def of(cls, sizes: np.ndarray) -> "InEffect":
        """Return that of clusters with these numbers of rows, [n]; clusters without rows do not count."""
        return cls(effective_number(sizes), int(np.count_nonzero(sizes)))

    @property
    def is_uneven(self) -> bool:
        """Whether the variance has to come from leaving out images."""
        return self.number < min(_EVEN_SHARE * self.n, _MANY)

    @property
    def reason(self) -> str | None:
        """Why there is no interval; None if there can be one."""
        if self.n == 1:
            return "no interval: all rows are about one image"
        if not self.is_uneven or self.number >= _FEWEST:
            return None
        return f"no interval: rows so unequal that {self.n} images count as {self.number:.2f}, expected {_FEWEST:g}"


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """The images of a set of answers, and of its right and wrong ones.

    Attributes:
        rows: Number of answers of each image, float64 [n]; some may have none.
        right: Number of right answers of each.
    """

    rows: np.ndarray
    right: np.ndarray

    @classmethod
    def of(cls, positive: np.ndarray, cluster: np.ndarray, n_clusters: int = 0) -> "Clusters":
        """Count rows, bool [n], and those that are positive, given each row's cluster, int [n] >= 0."""
        rows, right = (np.bincount(counted, minlength=n_clusters) for counted in (cluster, cluster[positive]))
        return cls(rows=rows.astype(np.float64), right=np.pad(right, (0, len(rows) - len(right))).astype(np.float64))

    @cached_property
    def in_effect(self) -> InEffect:
        """How many images have answers, and how many of equal size these are worth."""
        return InEffect.of(self.rows)

    @cached_property
    def n_rarer(self) -> int:
        """The number of images with right answers, or with wrong ones, whichever are fewer."""
        return min(int(np.count_nonzero(kind)) for kind in (self.right, self.rows - self.right))

    def df(self, of_rarer: float) -> float:
        """Return degrees of freedom; of even images, at most `of_rarer`.

        If few images hold the rarer kind of answer, a variance is about a sum of as many squares. Uneven images with
        it count as the equal ones that they are worth.
        """
        if not self.in_effect.is_uneven:
            return min(self.in_effect.n - 1.0, of_rarer)
        kinds = (self.right, self.rows - self.right)
        return min(degrees_of_freedom(self.rows), *(max(effective_number(kind), 1.0) for kind in kinds if kind.any()))

    def variance_of_share(self) -> float:
        """Return the variance of the share of right answers over images; of uneven ones, that of leaving each out."""
        held = self.rows > 0  # images without rows are left out, because zeros beside them change the last bit of a sum
        rows, n, n_images = self.rows[held], self.rows.sum(), self.in_effect.n
        # Whole numbers: n times the residual of each image. Their squares would not fit into 64 bits.
        residual = (n * self.right[held] - self.right.sum() * rows) / n
        if not self.in_effect.is_uneven:
            return n_images / (n_images - 1) * float(np.sort(residual**2).sum()) / n**2
        return (n_images - 1) / n_images * float(np.sort((residual / (n - rows)) ** 2).sum())

    def resampled(self, kernel: Kernel) -> Kernel:
        """Return the kernel of replicates: of uneven images, the one with the jackknife's variance."""
        return jackknife_kernel(kernel, self.rows) if self.in_effect.is_uneven else kernel

    @property
    def worth(self) -> float:
        """The number of images that uneven ones are worth; of others, their number."""
        return self.in_effect.number if self.in_effect.is_uneven else float(self.in_effect.n)

    @property
    def widening(self) -> float:
        """How much wider than its replicates an estimate spreads, because it has used up one image."""
        n = self.in_effect.n
        return 1.0 if self.in_effect.is_uneven or n < 2 else sqrt(n / (n - 1))


def jackknife_kernel(kernel: Kernel, sizes: np.ndarray) -> Kernel:
    """Return a linear kernel, whose replicates have the variance of the delete-one-cluster jackknife.

    Its value changes with every further draw of a cluster by sqrt((G - 1) / G) times what leaving it out changes. The
    differences of two such kernels on the same clusters have the variance of the difference's jackknife. `sizes` are
    the numbers of rows of each cluster.
    """
    held = np.flatnonzero(sizes)
    order = held[np.argsort(-sizes[held], kind="stable")]
    groups = np.concatenate([np.arange(min(len(order), _ALONE)), _ALONE + np.arange(len(order) - _ALONE) % _ALONE])
    left_out = np.concatenate(list(_without(kernel, order, groups, len(sizes))), axis=1)
    estimates = np.atleast_2d(kernel(np.ones((len(sizes), 1))))
    members = np.bincount(groups)
    shifts = (estimates - left_out) * np.sqrt((len(members) - 1) / len(members) / members)
    parts = []
    for value, shift in zip(estimates[:, 0], shifts, strict=True):
        change = np.zeros(len(sizes))
        change[order] = shift[groups]
        parts.append(linear_kernel(float(value), change) if np.isfinite(change).all() else undefined_kernel)
    return parts[0] if len(parts) == 1 else lambda weights: np.stack([part(weights) for part in parts])


def undefined_kernel(weights: np.ndarray) -> np.ndarray:
    """Return the replicates of a metric that has no value, [b] NaN."""
    return np.full(weights.shape[1], np.nan)


def _without(kernel: Kernel, order: np.ndarray, groups: np.ndarray, n_clusters: int) -> Iterator[np.ndarray]:
    """Yield the values without each group of the clusters `order`, float64 [k, <= 64]."""
    n_groups = int(groups.max()) + 1
    for start in range(0, n_groups, 64):
        weights = np.ones((n_clusters, min(64, n_groups - start)))
        inside = (groups >= start) & (groups < start + 64)
        weights[order[inside], groups[inside] - start] = 0.0
        yield np.atleast_2d(kernel(weights))

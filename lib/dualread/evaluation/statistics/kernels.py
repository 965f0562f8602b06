"""Metrics of a weighted sample, for many weightings at once: the inner loop of the cluster bootstrap.

A kernel is built once from the rows of a cell and maps cluster weights float64 [n_clusters, b] (how often each image
was drawn; a column adds up to n_clusters) to the metric's value in each of the b replicates, float64 [b], NaN where it
is undefined. The value is the metric of `dualread.evaluation.metrics` on the sample in which every row is repeated as
often as its image was drawn.

One rule makes a replicate's bits independent of the order of the rows, of the other replicates in the chunk and of the
number of threads: every sum is exact, so the order of its additions cannot matter, not even inside a matrix product.
Summands that are not whole numbers are made so by a power of two (`_scale`) and rounded, each by at most 2**-52 of what
a replicate can add up to.

Large arrays are few and used again: memory that the system hands out anew for each costs more than the arithmetic.
"""

from collections.abc import Callable
from itertools import pairwise
from math import ceil, isqrt, log2

import numpy as np
import scipy  # loads its parts when they are first used

Kernel = Callable[..., np.ndarray]


def mean_kernel(values: np.ndarray, cluster: np.ndarray, n_clusters: int) -> Kernel:
    """Return the kernel of the mean of `values` (float64 [n]): accuracy, Brier, HCE, and CCG over its decisive set.

    Args:
        values: float64 [n], one value a row of the set that is averaged.
        cluster: int [n], the row's image, in [0, n_clusters).
        n_clusters: How many images a replicate draws from; more than occur in `cluster` when the set is a subset.
    """
    counts = _rows_of(cluster, n_clusters)
    scale = _scale(n_clusters * counts.max(initial=0.0) * np.abs(values).max(initial=0.0))
    totals = np.bincount(cluster, weights=np.rint(values * scale), minlength=n_clusters)
    both = np.stack([totals, counts])

    def kernel(weights: np.ndarray) -> np.ndarray:
        total, n = both @ weights
        return _ratio(total, scale * n)

    return kernel


def two_way_mean_kernel(
    values: np.ndarray, source: np.ndarray, donor: np.ndarray, n_sources: int, n_donors: int
) -> Kernel:
    """Return the kernel of the mean of `values` over pairs of images, each pair as often as both its images together.

    It maps two weightings, of the source images and of the donor images, to the mean in which a pair weighs the product
    of its source's and its donor's weight.

    Args:
        values: float64 [n], one value a pair of the set that is averaged.
        source: int [n], the pair's source image, in [0, n_sources).
        donor: int [n], its donor image, in [0, n_donors).
        n_sources: How many images a replicate draws from for the sources.
        n_donors: How many for the donors.
    """
    shape = (n_sources, n_donors)
    counts = _table(np.ones(len(values)), source, donor, shape)
    scale = _scale(n_sources * n_donors * counts.data.max(initial=0.0) * np.abs(values).max(initial=0.0))
    totals = _table(np.rint(values * scale), source, donor, shape)

    def kernel(of_sources: np.ndarray, of_donors: np.ndarray) -> np.ndarray:
        total = (of_sources * (totals @ of_donors)).sum(axis=0)
        return _ratio(total, scale * (of_sources * (counts @ of_donors)).sum(axis=0))

    return kernel


def ece_kernel(
    confidence: np.ndarray, correct: np.ndarray, bin_index: np.ndarray, cluster: np.ndarray, n_clusters: int
) -> Kernel:
    """Return the kernel of the expected calibration error, given the bin of every row (int [n])."""
    counts = _rows_of(cluster, n_clusters)
    scale = _scale(n_clusters * counts.max(initial=0.0))
    cell, n_bins = bin_index * n_clusters + cluster, int(bin_index.max(initial=-1)) + 1
    gap = np.rint((correct - confidence) * scale)
    gaps = np.bincount(cell, weights=gap, minlength=n_bins * n_clusters).reshape(n_bins, n_clusters)
    return lambda weights: _ratio(np.abs(gaps @ weights).sum(axis=0), scale * (counts @ weights))


def auroc_kernel(confidence: np.ndarray, correct: np.ndarray, cluster: np.ndarray, n_clusters: int) -> Kernel:
    """Return the kernel of the AUROC with ties 1/2.

    Sorted by confidence once. In a replicate, the correct rows of a block win against every wrong row below the block
    and half against the wrong rows inside it. Everything is a multiple of 1/2.
    """
    blocks = _blocks(confidence, correct, cluster, n_clusters)

    def kernel(weights: np.ndarray) -> np.ndarray:
        right, wrong = np.split(blocks @ weights, 2)
        pairs = right.sum(axis=0) * wrong.sum(axis=0)
        inside = 0.5 * wrong
        wins = _running_sum(wrong)
        wins -= inside
        wins *= right
        return _ratio(wins.sum(axis=0), pairs)

    return kernel


def aurc_kernel(confidence: np.ndarray, correct: np.ndarray, cluster: np.ndarray, n_clusters: int) -> Kernel:
    """Return the kernel of the tie-aware AURC of `metrics.selective.aurc`.

    The same sum as there, by errors instead of by coverages: an error at rank p is among the k most confident for every
    k >= p, so it adds H[n] - H[p - 1], with H the harmonic numbers. An error of a block has each of the block's ranks
    with the same probability, and the sum of H[p - 1] over p = 1..m is m H[m] - m. So a block of m rows and e errors
    below M rows adds  e (H[n] + 1) - (e / m) ((M + m) H[M + m] - M H[M]).
    """
    blocks = _blocks(-confidence, correct, cluster, n_clusters)
    counts = _rows_of(cluster, n_clusters)
    most = int(n_clusters * counts.max(initial=0.0))
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, most + 1))])
    scale = _scale(most * harmonic[-1])
    ranks = np.arange(most + 1) * harmonic * scale

    def kernel(weights: np.ndarray) -> np.ndarray:
        size, errors = np.split(blocks @ weights, 2)
        n_errors, n = errors.sum(axis=0), counts @ weights
        size += errors
        share = np.maximum(size, 1.0)  # a block that is not drawn has no errors either
        np.divide(errors, share, out=share)
        # From here on in the memory of `size` and `errors`.
        through = ranks.take(_running_sum(size).astype(np.intp), out=size, mode="clip")
        step = errors
        step[:1] = through[:1]
        np.subtract(through[1:], through[:-1], out=step[1:])
        share *= step
        np.rint(share, out=share)
        return _ratio(n_errors * (1.0 + harmonic.take(n.astype(np.intp))) - share.sum(axis=0) / scale, n)

    return kernel


def _blocks(values: np.ndarray, correct: np.ndarray, cluster: np.ndarray, n_clusters: int) -> "scipy.sparse.csr_array":
    """Return how many rows each cluster has in each block, [2 * n_blocks, n_clusters]: the correct, then the wrong.

    Blocks ascend with `values`. Rows of one value are in one block. So are neighbouring values whose rows are all
    correct, or all wrong, because no metric of ranks depends on the order among these.
    """
    _rows_of(cluster, n_clusters)
    distinct, level = np.unique(values, return_inverse=True)
    has_right, has_wrong = (np.bincount(level[of], minlength=len(distinct)) > 0 for of in (correct, ~correct))
    mixed = has_right & has_wrong
    opens = np.ones(len(distinct), dtype=np.bool_)
    opens[1:] = mixed[1:] | mixed[:-1] | (has_right[1:] != has_right[:-1])
    n_blocks = np.count_nonzero(opens)
    row = (np.cumsum(opens) - 1)[level] + n_blocks * ~correct
    return scipy.sparse.csr_array((np.ones(len(row)), (row, cluster)), shape=(2 * n_blocks, n_clusters))


def _running_sum(rows: np.ndarray) -> np.ndarray:
    """Add to every row of float64 [n, b] all rows above it, in place; several times as fast as np.cumsum(axis=0).

    Within stretches of sqrt(n) rows, in all of them at once, and then from stretch to stretch: a call for each of many
    short rows would cost more than the sums.
    """
    length = max(isqrt(len(rows)), 1)
    n_whole = len(rows) // length
    stretches = rows[: n_whole * length].reshape(n_whole, length, rows.shape[1])
    for k in range(1, length):
        stretches[:, k] += stretches[:, k - 1]
    for above, stretch in pairwise(stretches):
        stretch += above[-1]
    for k in range(n_whole * length, len(rows)):
        rows[k] += rows[k - 1]
    return rows


def _table(
    values: np.ndarray, source: np.ndarray, donor: np.ndarray, shape: tuple[int, int]
) -> "scipy.sparse.csr_array":
    for cluster, n_clusters in zip((source, donor), shape, strict=True):
        _rows_of(cluster, n_clusters)
    return scipy.sparse.csr_array((values, (source, donor)), shape=shape)


def _rows_of(cluster: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return how many rows each cluster has, float64 [n_clusters]."""
    if len(cluster) and not 0 <= cluster.min() <= cluster.max() < n_clusters:
        raise ValueError(f"cluster: indices {cluster.min()}..{cluster.max()}, expected 0..{n_clusters - 1}.")
    return np.bincount(cluster, minlength=n_clusters).astype(np.float64)


def _scale(bound: float) -> float:
    """Return the power of two that makes sums of absolute value <= `bound` whole numbers that float64 holds exactly."""
    return 2.0 ** (52 - ceil(log2(max(bound, 1.0))))


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    undefined = np.full(len(numerator), np.nan)
    return np.divide(numerator, denominator, out=undefined, where=denominator > 0)

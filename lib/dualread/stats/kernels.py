"""Metrics of a weighted sample, for many weightings at once: the inner loop of the cluster bootstrap.

A kernel is built once from the rows of a cell and maps cluster weights float64 [b, n_clusters] (how often each image
was drawn) to the metric's value in each of the b replicates, float64 [b], NaN where it is undefined. The value is the
metric of `dualread.metrics` on the sample in which every row is repeated as often as its image was drawn.

Two rules make a replicate's bits independent of the other replicates in the chunk, of the order of the rows and of
the number of threads: rows are sorted before any sum, and sums run along the last axis of elementwise products, never
through a matrix product, whose order of additions depends on its shape.
"""

from collections.abc import Callable

import numpy as np

Kernel = Callable[[np.ndarray], np.ndarray]


def mean_kernel(values: np.ndarray, cluster: np.ndarray, n_clusters: int) -> Kernel:
    """Return the kernel of the mean of `values` (float64 [n]): accuracy, Brier, HCE, and CCG over its decisive set.

    Args:
        values: float64 [n], one value a row of the set that is averaged.
        cluster: int [n], the row's image, in [0, n_clusters).
        n_clusters: How many images a replicate draws from; more than occur in `cluster` when the set is a subset.
    """
    order = np.lexsort((values, cluster))
    totals = np.bincount(cluster[order], weights=values[order], minlength=n_clusters)
    counts = np.bincount(cluster, minlength=n_clusters).astype(np.float64)
    return lambda weights: _ratio((weights * totals).sum(axis=1), (weights * counts).sum(axis=1))


def ece_kernel(
    confidence: np.ndarray, correct: np.ndarray, bin_index: np.ndarray, cluster: np.ndarray, n_clusters: int
) -> Kernel:
    """Return the kernel of the expected calibration error, given the bin of every row (int [n])."""
    order = np.lexsort((correct, confidence, cluster))
    cell = (bin_index * n_clusters + cluster)[order]
    gap = (correct.astype(np.float64) - confidence)[order]
    n_bins = int(bin_index.max(initial=-1)) + 1
    gaps = np.bincount(cell, weights=gap, minlength=n_bins * n_clusters).reshape(n_bins, n_clusters)
    counts = np.bincount(cluster, minlength=n_clusters).astype(np.float64)

    def kernel(weights: np.ndarray) -> np.ndarray:
        total = np.zeros(len(weights))
        for gap_of_cluster in gaps:
            total += np.abs((weights * gap_of_cluster).sum(axis=1))
        return _ratio(total, (weights * counts).sum(axis=1))

    return kernel


def auroc_kernel(confidence: np.ndarray, correct: np.ndarray, cluster: np.ndarray, n_clusters: int) -> Kernel:
    """Return the kernel of the AUROC with ties 1/2.

    Sorted by confidence once. In a replicate, a correct row of weight w wins w times the wrong weight below its tied
    block plus half of that inside it. All terms are multiples of 1/2, so the sums are exact.
    """
    levels = _Levels(confidence, cluster, n_clusters)
    right = correct[levels.order].astype(np.float64)

    def kernel(weights: np.ndarray) -> np.ndarray:
        of_row = weights[:, levels.cluster]
        positive = levels.sums(of_row * right)
        negative = levels.sums(of_row * (1.0 - right))
        below = np.cumsum(negative, axis=1) - negative
        wins = (positive * (below + 0.5 * negative)).sum(axis=1)
        return _ratio(wins, positive.sum(axis=1) * negative.sum(axis=1))

    return kernel


def aurc_kernel(confidence: np.ndarray, correct: np.ndarray, cluster: np.ndarray, n_clusters: int) -> Kernel:
    """Return the kernel of the tie-aware AURC; the closed form is derived in `metrics.selective.aurc`."""
    levels = _Levels(-confidence, cluster, n_clusters)
    wrong = (~correct)[levels.order].astype(np.float64)

    def kernel(weights: np.ndarray) -> np.ndarray:
        of_row = weights[:, levels.cluster]
        size, errors = levels.sums(of_row), levels.sums(of_row * wrong)
        through, errors_through = np.cumsum(size, axis=1), np.cumsum(errors, axis=1)
        n = through[:, -1] if through.shape[1] else np.zeros(len(weights))
        harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n.max(initial=0) + 1))])
        step = harmonic[through.astype(np.int64)] - harmonic[(through - size).astype(np.int64)]
        share = np.divide(errors, size, out=np.zeros_like(errors), where=size > 0)  # a level not drawn adds nothing
        above = (errors_through - errors) - share * (through - size)
        return _ratio((errors + above * step).sum(axis=1), n)

    return kernel


class _Levels:
    """Rows sorted by value, and sums over the blocks of equal values."""

    def __init__(self, values: np.ndarray, cluster: np.ndarray, n_clusters: int) -> None:
        if len(cluster) and not 0 <= cluster.min() <= cluster.max() < n_clusters:
            raise ValueError(f"cluster: indices {cluster.min()}..{cluster.max()}, expected 0..{n_clusters - 1}.")
        self.order = np.lexsort((cluster, values))
        self.cluster = cluster[self.order]
        ordered = values[self.order]
        self.starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(ordered) else None

    def sums(self, of_row: np.ndarray) -> np.ndarray:
        """Sum float64 [b, n] over every block; the summands are whole numbers, so the sums are exact."""
        return of_row if self.starts is None else np.add.reduceat(of_row, self.starts, axis=1)


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    undefined = np.full(len(numerator), np.nan)
    return np.divide(numerator, denominator, out=undefined, where=denominator > 0)

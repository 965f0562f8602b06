"""Metrics of a weighted sample, for many weightings at once: the inner loop of the cluster bootstrap.

A kernel is built once from the rows of a cell. It maps weights float64 [n_clusters, b], which say how often each image
was drawn (each column adds up to n_clusters), to the metric's value in each of the b replicates, float64 [b], NaN where
it is undefined; `rank_kernel` and `error_kernel` do so for several metrics, float64 [k, b]. The value is that of the
metric in `dualread.evaluation.metrics` on the sample in which every row is repeated as often as its image was drawn.

All sums are exact, so that the order of additions has no influence, not even inside a matrix product. The bits of a
replicate therefore do not depend on the order of the rows, on the other replicates of the chunk, or on the number of
threads. Summands that are not whole numbers are multiplied by a power of two (`_scale`) and rounded, each by at most
2**-52 of the largest possible sum of a replicate.

Large arrays are reused, because allocating memory for each of them costs more than the arithmetic.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from math import ceil, isqrt, log2

import numpy as np
import scipy  # loads its submodules when they are first used

Kernel = Callable[[np.ndarray], np.ndarray]

# With more blocks, the dense arrays of `_ranks_of_blocks` no longer fit into a processor's cache.
_DENSE_BLOCKS = 2**13
_MOST_DRAWN = 2**22  # with more values, `error_kernel` computes its replicates in parts
# Sums that could be larger are scaled as if they were of this size: no replicate is likely to have as many rows.
_MOST_ROWS = 2**27


def mean_kernel(values: np.ndarray, cluster: np.ndarray, n_clusters: int) -> Kernel:
    """Return the kernel of the mean of `values`, float64 [n]: of accuracy, Brier score, and HCE.

    `cluster`, int [n], is each row's image in [0, n_clusters); a replicate may draw images that have no row.
    """
    counts = _rows_of(cluster, n_clusters)
    scale = _scale(n_clusters * counts.max(initial=0.0) * np.abs(values).max(initial=0.0))
    totals = np.bincount(cluster, weights=np.rint(values * scale), minlength=n_clusters)
    both = np.stack([totals, counts])

    def kernel(weights: np.ndarray) -> np.ndarray:
        total, n = both @ weights
        return _ratio(total, scale * n)

    return kernel


def linear_kernel(value: float, change: np.ndarray) -> Kernel:
    """Return the kernel of a metric that is `value` on the images themselves, each drawn once.

    It changes by `change`, float64 [n_clusters], with every further draw of an image.
    """
    scale = _scale(len(change) * np.abs(change).max(initial=0.0))
    steps = np.rint(change * scale)
    return lambda weights: value + (steps @ weights - steps.sum()) / scale


def auroc_kernel(confidence: np.ndarray, correct: np.ndarray, cluster: np.ndarray, n_clusters: int) -> Kernel:
    """Return the kernel of the AUROC, in which a tie counts 1/2.

    Rows are sorted by confidence once. In a replicate, a correct row of a block wins against every wrong row below the
    block, and a wrong row of the same block counts 1/2. All numbers are multiples of 1/2.
    """
    blocks = _counts(_block_of(confidence, correct), correct, cluster, n_clusters)
    return lambda weights: _auroc(*np.split(blocks @ weights, 2))


def rank_kernel(confidence: np.ndarray, correct: np.ndarray, cluster: np.ndarray, n_clusters: int) -> Kernel:
    """Return the kernel of AUROC, and of the tie-aware AURC and E-AURC of `metrics.selective`, float64 [3, b].

    All need to know how many rows of each block are drawn, which takes longer than all else. There are two ways to
    count them, with the same bits: a matrix product for few blocks, running sums over the rows for many.

    The sum of the AURC is the same as there, but over errors instead of coverages. An error at rank p is among the k
    most confident rows for every k >= p, so that it adds H[n] - H[p - 1], with H the harmonic numbers. An error in a
    block has each rank of the block with the same probability, and the sum of H[p - 1] over p = 1..m is m H[m] - m. A
    block of m rows and e errors that follows M more confident rows therefore adds
    e (H[n] + 1) - (e / m) ((M + m) H[M + m] - M H[M]).
    """
    most = int(n_clusters * _rows_of(cluster, n_clusters).max(initial=0.0))
    n = min(most, _MOST_ROWS)
    # Where n is large, H[n] without the n numbers before it.
    harmonic = _harmonic_numbers(n)[n] if n < 2**16 else scipy.special.digamma(n + 1.0) + np.euler_gamma
    scale = _scale(n * float(harmonic))
    block = _block_of(confidence, correct)
    if block.max(initial=0) < _DENSE_BLOCKS:
        return _ranks_of_blocks(_counts(block, correct, cluster, n_clusters), scale)
    return _ranks_of_rows(block, correct, cluster, np.int32 if most < 2**31 else np.int64, scale)


def _ranks_of_blocks(blocks: "scipy.sparse.csc_array | scipy.sparse.csr_array", scale: float) -> Kernel:
    """Return the kernel of `rank_kernel` that computes many replicates at once, from the rows drawn of each block."""

    def kernel(weights: np.ndarray) -> np.ndarray:
        right, wrong = np.split(blocks @ weights, 2)
        n_wrong, size = wrong.sum(axis=0), right + wrong
        share = np.maximum(size, 1.0)  # a block that is not drawn has no errors
        np.divide(wrong, share, out=share)
        auroc = _auroc(right, wrong)
        # The arrays below reuse the memory of `size` and `right`. The most confident block is the last one.
        through = _running_sum(size)
        n = through[-1].copy() if len(through) else n_wrong
        harmonic = _harmonic_numbers(int(n.max(initial=0.0)))
        of_n = harmonic.take(n.astype(np.intp))
        np.subtract(n, through, out=through)  # M
        more = harmonic.take(through.astype(np.intp))
        more *= through
        more *= scale
        step = right
        step[:1] = n * of_n * scale - more[:1]
        np.subtract(more[:-1], more[1:], out=step[1:])
        share *= step
        np.rint(share, out=share)
        aurc = _ratio(n_wrong * (1.0 + of_n) - share.sum(axis=0) / scale, n)
        return np.stack([auroc, aurc, _excess(aurc, n, n_wrong)])

    return kernel


def _ranks_of_rows(
    block: np.ndarray, correct: np.ndarray, cluster: np.ndarray, dtype: type[np.integer], scale: float
) -> Kernel:
    """Return the kernel of `rank_kernel` that computes one replicate after the other, from a running sum over rows."""
    # Rows are sorted by block, and in a block the correct ones come first. The running sum of how often each row is
    # drawn then says everything: where a block begins, where its wrong rows begin, and where it ends. Only blocks with
    # wrong rows matter. With many blocks this takes half the time of a product with a matrix, and little memory.
    order = np.lexsort((~correct, block))
    sizes = np.bincount(block)
    rights = np.bincount(block[correct], minlength=len(sizes))
    has_wrong = np.flatnonzero(sizes > rights)
    last = np.cumsum(sizes)[has_wrong]
    first = last - sizes[has_wrong]
    middle, images = first + rights[has_wrong], cluster[order]

    def ranks(times: np.ndarray) -> tuple[float, float, int, int]:
        drawn = np.zeros(len(images) + 1, dtype=dtype)
        np.cumsum(times.astype(dtype).take(images), out=drawn[1:])
        n, below, through = int(drawn[-1]), drawn.take(first), drawn.take(last)
        right_or_below = drawn.take(middle)
        wrong = (through - right_or_below).astype(np.float64)
        n_wrong = int(wrong.sum())
        pairs = (n - n_wrong) * n_wrong
        # The correct rows that have at most a block's confidence; those inside the block count 1/2.
        not_above = right_or_below - (np.cumsum(wrong) - wrong) - 0.5 * (right_or_below - below)
        auroc = (pairs - float((not_above * wrong).sum())) / pairs if pairs else np.nan
        harmonic, (more, fewer) = _harmonic_numbers(n), (n - below, n - through)  # M + m and M
        share = wrong / np.maximum(through - below, 1)
        share *= more * harmonic.take(more) * scale - fewer * harmonic.take(fewer) * scale
        total = float(np.rint(share, out=share).sum()) / scale
        return auroc, (n_wrong * (1.0 + harmonic[n]) - total) / n if n else np.nan, n, n_wrong

    def kernel(weights: np.ndarray) -> np.ndarray:
        auroc, aurc, n, n_wrong = np.array([ranks(times) for times in weights.T]).reshape(-1, 4).T
        return np.stack([auroc, aurc, _excess(aurc, n, n_wrong)])

    return kernel


def _excess(aurc: np.ndarray, n: np.ndarray, n_wrong: np.ndarray) -> np.ndarray:
    """Return the E-AURC, float64 [b], given the AURC and how many rows and wrong rows are drawn, [b] each."""
    harmonic = _harmonic_numbers(int(n.max(initial=0.0)))
    right = n - n_wrong
    best = n_wrong - right * (harmonic.take(n.astype(np.intp)) - harmonic.take(right.astype(np.intp)))
    excess = aurc - _ratio(best, n)
    # The best order has exactly 0, which has no logit. The smallest other value is 1 / 2n^2, of one tie of two rows.
    return np.where(excess * n**2 < 0.25, 0.0, excess)


def error_kernel(confidence: np.ndarray, correct: np.ndarray, cluster: np.ndarray, n_clusters: int) -> Kernel:
    """Return the kernel of `metrics.discrimination.aupr_errors` and `fpr_at_95_tpr`, float64 [2, b].

    Rows are sorted once, correct ones first where confidences are equal. The running sum of draws then says how many
    rows, and how many wrong ones, have at most each distinct confidence with wrong rows.
    """
    order = np.lexsort((~correct, confidence))
    scores, is_wrong, images = confidence[order], ~correct[order], cluster[order]
    opens, was_wrong = np.ones(len(order) + 1, dtype=np.bool_), np.zeros(len(order), dtype=np.bool_)
    opens[1:-1], was_wrong[1:] = scores[1:] > scores[:-1], is_wrong[:-1]
    first = np.flatnonzero(is_wrong & (opens[:-1] | ~was_wrong))
    last = np.flatnonzero(is_wrong & opens[1:]) + 1
    most = int(n_clusters * _rows_of(cluster, n_clusters).max(initial=0.0))
    dtype, scale = np.int32 if most < 2**31 else np.int64, _scale(min(most, _MOST_ROWS))

    def kernel(weights: np.ndarray) -> np.ndarray:
        if weights.shape[1] > 1 and weights.shape[1] * len(images) > _MOST_DRAWN:
            return np.concatenate([kernel(half) for half in np.array_split(weights, 2, axis=1)], axis=1)
        drawn = np.zeros((weights.shape[1], len(images) + 1), dtype=dtype)
        np.cumsum(weights.T.astype(dtype).take(images, axis=1), axis=1, out=drawn[:, 1:])
        through = drawn.take(last, axis=1).astype(np.float64)
        wrong = through - drawn.take(first, axis=1)
        errors = np.cumsum(wrong, axis=1)
        n_wrong = wrong.sum(axis=1)
        n_right = drawn[:, -1] - n_wrong
        precision = wrong * errors / np.maximum(through, 1.0)
        found = np.rint(precision * scale).sum(axis=1) / scale
        kept = np.where(20.0 * (through - errors) > n_right[:, np.newaxis], wrong, 0.0).sum(axis=1)
        return np.where(n_right > 0, np.stack([_ratio(found, n_wrong), _ratio(kept, n_wrong)]), np.nan)

    return kernel


def _auroc(right: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Return the AUROC, float64 [b], given how many correct and wrong rows each block has, [n_blocks, b] each."""
    # The two arrays are overwritten.
    pairs = right.sum(axis=0) * wrong.sum(axis=0)
    inside = 0.5 * wrong
    wins = _running_sum(wrong)
    wins -= inside
    wins *= right
    return _ratio(wins.sum(axis=0), pairs)


def _block_of(values: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """Return the block of each row, int64 [n]; blocks ascend with `values`."""
    # Rows with the same value are in one block. Neighbouring values whose rows are all correct, or all wrong, share a
    # block, because no metric of ranks depends on their order.
    distinct, level = np.unique(values, return_inverse=True)
    has_right, has_wrong = (np.bincount(level[kind], minlength=len(distinct)) > 0 for kind in (correct, ~correct))
    mixed = has_right & has_wrong
    opens = np.ones(len(distinct), dtype=np.bool_)
    opens[1:] = mixed[1:] | mixed[:-1] | (has_right[1:] != has_right[:-1])
    return (np.cumsum(opens) - 1)[level]


def _counts(
    block: np.ndarray, correct: np.ndarray, cluster: np.ndarray, n_clusters: int
) -> "scipy.sparse.csc_array | scipy.sparse.csr_array":
    """Return how many rows each cluster has in each block, [2 * n_blocks, n_clusters]: correct, then wrong ones."""
    _rows_of(cluster, n_clusters)
    n_blocks = int(block.max(initial=-1)) + 1
    shape = (2 * n_blocks, n_clusters)
    # A product goes through the rows of csr, and through the columns of csc, one after the other. The larger one of its
    # two dense arrays, which may not fit into a cache, is then read or written in order.
    layout = scipy.sparse.csc_array if shape[0] < shape[1] else scipy.sparse.csr_array
    return layout((np.ones(len(block)), (block + n_blocks * ~correct, cluster)), shape=shape)


def _running_sum(rows: np.ndarray) -> np.ndarray:
    """Add to every row of float64 [n, b] all rows above it, in place; several times as fast as np.cumsum(axis=0)."""
    # Sums are computed within stretches of sqrt(n) rows, in all stretches at once, and then from stretch to stretch.
    # One call per row would cost more than the additions.
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


def _rows_of(cluster: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return how many rows each cluster has, float64 [n_clusters]."""
    if len(cluster) and not 0 <= cluster.min() <= cluster.max() < n_clusters:
        raise ValueError(f"cluster: indices {cluster.min()}..{cluster.max()}, expected 0..{n_clusters - 1}.")
    return np.bincount(cluster, minlength=n_clusters).astype(np.float64)


def _harmonic_numbers(n: int) -> np.ndarray:
    """Return a table that begins with the harmonic numbers H[0], ..., H[n]."""
    # Its size follows the rows that are drawn. Most resamples have about as many as there are; with an image that has
    # nearly all rows, the largest possible number is millions of times as large.
    return _first_harmonic_numbers(2 ** n.bit_length())


@lru_cache(maxsize=2)
def _first_harmonic_numbers(n: int) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n))])


def _scale(bound: float) -> float:
    """Return the power of two that scales sums of size <= `bound` so that float64 holds them as whole numbers."""
    return 2.0 ** (52 - ceil(log2(max(bound, 1.0))))


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    undefined = np.full(len(numerator), np.nan)
    return np.divide(numerator, denominator, out=undefined, where=denominator > 0)

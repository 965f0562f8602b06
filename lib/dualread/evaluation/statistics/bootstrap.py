"""Image-cluster bootstrap: resample the distinct source images with replacement, each with all its questions.

    >>> correct, images = np.array([1.0, 0.0, 1.0]), ["ct-01", "ct-01", "ct-02"]
    >>> draws = ClusterDraws(names=("mine",), cluster_ids=("ct-01", "ct-02"), replicates=1000)
    >>> accuracy = mean_kernel(correct, draws.cluster_of(images), n_clusters=2)  # of `statistics.kernels`
    >>> interval(image_cluster_replicates({"accuracy": accuracy}, draws)["accuracy"])
    Interval(low=0.5, high=1.0, n_replicates=1000, n_undefined=0)

The draws depend only on names and on the sorted image ids. All methods, metrics and subsets of a (study, data set,
split) therefore share the same resamples, whatever the order and the number of the computations.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from operator import lt
from typing import TypeVar

import numpy as np
import polars as pl

from dualread.evaluation.statistics.kernels import Kernel
from dualread.progress import track
from dualread.seeding import generator

__all__ = ["ClusterDraws", "Interval", "image_cluster_replicates", "including", "interval"]

Key = TypeVar("Key")

# The number of replicates that are computed at once. A temporary array of a kernel has one value per replicate and row,
# and `_IN_CACHE` values fit into a processor's cache. With more rows than that, replicates come one after the other:
# memory then depends on the rows alone.
CHUNK = 512
_MOST, _IN_CACHE = 2**14, 2**18
# Draws that need more memory than this are not kept but drawn again, and no more than `_KEPT` are kept.
_KEPT_BYTES, _KEPT = 2**23, 16
# Progress is reported if rows times replicates are more than these, which takes some seconds.
_LONG = 2**27
PERCENTILES = (2.5, 97.5)


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A 95% percentile interval over the replicates that have a value.

    Attributes:
        low: The 2.5th percentile; None if no replicate has a value.
        high: The 97.5th percentile; None if no replicate has a value.
        n_replicates: Number of replicates, B.
        n_undefined: Number of replicates without a value, which the percentiles leave out.
    """

    low: float | None
    high: float | None
    n_replicates: int
    n_undefined: int


@dataclass(frozen=True, kw_only=True)
class ClusterDraws:
    """Resamples of the clusters of one (study, data set, split): its images, or patients.

    Attributes:
        names: The names from which the random stream is derived, for instance (study, dataset, split).
        cluster_ids: The distinct clusters of the manifest, sorted.
        replicates: Number of resamples, B.

    Raises:
        ValueError: `cluster_ids` are not distinct and sorted, or `replicates` is negative.
    """

    names: tuple[str, ...]
    cluster_ids: tuple[str, ...]
    replicates: int

    def __post_init__(self) -> None:
        if not all(map(lt, self.cluster_ids, self.cluster_ids[1:])):
            raise ValueError("cluster_ids: expected distinct sorted ids, because the draws depend on their order.")
        if self.replicates < 0:
            raise ValueError(f"replicates: {self.replicates}, expected a number >= 0.")

    def cluster_of(self, ids: pl.Series | Sequence[str]) -> np.ndarray:
        """Return the cluster index of every row, int64 [n]: the position of its cluster in `cluster_ids`.

        Args:
            ids: The cluster of every row, [n].

        Raises:
            ValueError: A cluster is not among those of the draws.
        """
        known = pl.DataFrame({"cluster_id": self.cluster_ids}, schema={"cluster_id": pl.String}).with_row_index(
            "cluster"
        )
        rows = pl.DataFrame({"cluster_id": ids}, schema={"cluster_id": pl.String})
        joined = rows.join(known, on="cluster_id", how="left", maintain_order="left")
        if unknown := joined.filter(pl.col("cluster").is_null())["cluster_id"].unique().sort().to_list():
            raise ValueError(f"cluster {unknown[0]!r} is not among the manifest's {len(known)}.")
        return joined["cluster"].cast(pl.Int64).to_numpy()

    def weights(self, *, chunk: int = CHUNK) -> Iterator[np.ndarray]:
        """Yield how often each cluster was drawn, float64 [n_clusters, <= chunk], with one column per replicate.

        The replicates do not depend on `chunk`, the largest number of columns.
        """
        if len(self.cluster_ids) * self.replicates > _KEPT_BYTES:
            yield from (counts.astype(np.float64, order="C") for counts in _draw(self, chunk))
            return
        drawn = _drawn(self)
        for start in range(0, drawn.shape[1], chunk):
            yield drawn[:, start : start + chunk].astype(np.float64, order="C")


# One process evaluates all methods of an actor on the same images, one after the other.
@lru_cache(maxsize=_KEPT)
def _drawn(draws: ClusterDraws) -> np.ndarray:
    """Return how often each image was drawn, [n_images, B]; as bytes, unless an image was drawn more than 255 times."""
    n = len(draws.cluster_ids)
    step = min(CHUNK, max(1, _IN_CACHE // max(n, 1)))
    parts = [counts.astype(np.min_scalar_type(counts.max())) for counts in _draw(draws, step)]
    drawn = np.concatenate([np.zeros((n, 0), dtype=np.uint8), *parts], axis=1)
    drawn.flags.writeable = False
    return drawn


def _draw(draws: ClusterDraws, chunk: int) -> Iterator[np.ndarray]:
    """Yield how often each image is drawn, int64 [n_images, <= chunk]; the draws do not depend on `chunk`."""
    stream, n = generator(*draws.names, "bootstrap"), len(draws.cluster_ids)
    for start in range(0, draws.replicates if n else 0, chunk):
        size = min(chunk, draws.replicates - start)
        cells = stream.integers(0, n, size=(size, n))
        cells += n * np.arange(size)[:, np.newaxis]
        yield np.bincount(cells.ravel(), minlength=n * size).reshape(size, n).T


def chunk_of(n_rows: int) -> int:
    """Return how many replicates of `n_rows` rows, or images, are computed at once."""
    return min(_MOST, max(1, _IN_CACHE // max(n_rows, 1)))


def image_cluster_replicates(
    kernels: Mapping[Key, Kernel], draws: ClusterDraws, *, n_rows: int = 0, chunk: int | None = None
) -> dict[Key, np.ndarray]:
    """Return the values of every kernel in every replicate; all share the same draws.

    Memory depends on rows and images, and not on the replicates, of which only the values are kept. Progress is
    reported if there is much to do.

    Args:
        kernels: By any key, such as the metric's name, a function from weights to values (see
            `dualread.evaluation.statistics.kernels`). It takes float64 [n_images, b], how often each image was drawn,
            and returns float64 [b], or [k, b] for k metrics.
        draws: The draws of the images.
        n_rows: Largest number of rows of a kernel.
        chunk: Largest number of replicates that are computed at once; by default as many as fit into a cache. It has no
            influence on the values.

    Returns:
        By key, float64 [B], or [k, B], NaN where a replicate has no value; [0] without resamples.
    """
    replicates: dict[Key, np.ndarray] = {key: np.empty(0) for key in kernels}
    start, n = 0, max(n_rows, len(draws.cluster_ids)) * draws.replicates
    chunk = chunk or chunk_of(max(n_rows, len(draws.cluster_ids)))
    counted = iter(track(range(draws.replicates), draws.replicates, "resamples") if n > _LONG else ())
    for weights in draws.weights(chunk=chunk):
        part = slice(start, start := start + weights.shape[1])
        for key, kernel in kernels.items():
            values = kernel(weights)
            if part.start == 0:
                replicates[key] = np.empty((*values.shape[:-1], draws.replicates))
            replicates[key][..., part] = values
        deque(islice(counted, weights.shape[1]), maxlen=0)
    deque(counted, maxlen=0)
    return replicates


def interval(replicates: np.ndarray) -> Interval:
    """Return the 95% percentile interval of replicates.

    Args:
        replicates: float64 [B]. NaN means that a replicate has no value; these are left out and counted.

    Returns:
        The 2.5th and the 97.5th percentile, interpolated linearly between replicates.
    """
    defined = replicates[~np.isnan(replicates)]
    n_undefined = len(replicates) - len(defined)
    if len(defined) == 0:
        return Interval(low=None, high=None, n_replicates=len(replicates), n_undefined=n_undefined)
    low, high = np.percentile(defined, PERCENTILES)
    return Interval(low=float(low), high=float(high), n_replicates=len(replicates), n_undefined=n_undefined)


def including(low: float | None, high: float | None, estimate: float | None) -> tuple[float | None, float | None]:
    """Return the ends of an interval, moved to the estimate where they exclude it, as those of few resamples may."""
    if low is None or high is None or estimate is None:
        return low, high
    return min(low, estimate), max(high, estimate)

"""Image-cluster bootstrap: resample unique source images with replacement and keep all questions of each.

Draws depend on names and on the sorted image ids of the manifest alone, so every method, metric and subset of a
(study, data set, split) meets the same resampled images, whatever runs first and in however many pieces.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import polars as pl

from dualread.evaluation.statistics.kernels import Kernel
from dualread.seeding import generator

# Replicates worked on at once. A kernel's few temporaries have a value for each of them and each row: where rows are
# many, replicates are fewer, so that a temporary stays below 128 MB.
CHUNK = 512
_CELLS = 2**24
# Draws that need more memory than this are not kept, but drawn again whenever they are asked for.
_KEPT_BYTES = 2**26
PERCENTILES = (2.5, 97.5)


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A 95% percentile interval over the replicates that have a value; null ends where none has."""

    low: float | None
    high: float | None
    n_replicates: int
    n_undefined: int


@dataclass(frozen=True, kw_only=True)
class ImageDraws:
    """Resamples of the images of one (study, data set, split).

    Attributes:
        names: What the random stream is derived from, for instance (study, dataset, split).
        image_ids: The distinct images of the manifest, sorted.
        replicates: How many resamples, B.
        donors_only: Images of donors on which no question of the manifest is asked. They are drawn with the others for
            donors, and change no draw of the sources.
    """

    names: tuple[str, ...]
    image_ids: tuple[str, ...]
    replicates: int
    donors_only: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if list(self.image_ids) != sorted(set(self.image_ids)):
            raise ValueError("image_ids: expected distinct sorted ids; the draws depend on their order.")
        if self.replicates < 0:
            raise ValueError(f"replicates: {self.replicates}, expected a number >= 0.")

    def cluster_of(self, image_ids: pl.Series | Sequence[str]) -> np.ndarray:
        """Return the cluster index of every row, int64 [n].

        Raises:
            ValueError: An image is not among the images drawn from.
        """
        known = pl.DataFrame({"image": self.image_ids}, schema={"image": pl.String}).with_row_index("cluster")
        rows = pl.DataFrame({"image": image_ids}, schema={"image": pl.String})
        found = rows.join(known, on="image", how="left", maintain_order="left")
        if unknown := found.filter(pl.col("cluster").is_null())["image"].unique().sort().to_list():
            raise ValueError(f"image {unknown[0]!r} is not in the manifest's {len(known)} images.")
        return found["cluster"].cast(pl.Int64).to_numpy()

    def of_donors(self) -> "ImageDraws":
        """Return further draws, of these images and `donors_only`, for the donors of a two-way bootstrap."""
        images = tuple(sorted({*self.image_ids, *self.donors_only}))
        return replace(self, names=(*self.names, "donors"), image_ids=images, donors_only=())

    def weights(self, *, chunk: int = CHUNK) -> Iterator[np.ndarray]:
        """Yield how often each image was drawn, float64 [n_images, <= chunk], a column a replicate.

        The replicates are the same for any `chunk`.
        """
        n = len(self.image_ids)
        if n * self.replicates * np.min_scalar_type(n).itemsize > _KEPT_BYTES:
            yield from (counts.astype(np.float64) for counts in _draw(self, chunk))
            return
        drawn = _drawn(self)
        for start in range(0, drawn.shape[1], chunk):
            yield drawn[:, start : start + chunk].astype(np.float64, order="C")


# The methods of an actor are evaluated one after the other in one process, on the same images.
@lru_cache(maxsize=32)
def _drawn(draws: ImageDraws) -> np.ndarray:
    """Return how often each image was drawn, [n_images, B], of the smallest unsigned type that holds any draw."""
    n = len(draws.image_ids)
    kind = np.min_scalar_type(n)
    parts = [counts.astype(kind) for counts in _draw(draws, chunk_of(n))]
    drawn = np.concatenate([np.zeros((n, 0), dtype=kind), *parts], axis=1)
    drawn.flags.writeable = False
    return drawn


def _draw(draws: ImageDraws, chunk: int) -> Iterator[np.ndarray]:
    """Yield how often each image is drawn, int64 [n_images, <= chunk]; the stream is the same for any `chunk`."""
    stream, n = generator(*draws.names, "bootstrap"), len(draws.image_ids)
    for start in range(0, draws.replicates if n else 0, chunk):
        size = min(chunk, draws.replicates - start)
        cells = stream.integers(0, n, size=(size, n)) * size + np.arange(size)[:, np.newaxis]
        yield np.bincount(cells.ravel(), minlength=n * size).reshape(n, size)


def chunk_of(n_rows: int) -> int:
    """Return how many replicates of so many rows are worked on at once."""
    return min(CHUNK, max(1, _CELLS // max(n_rows, 1)))


def image_cluster_replicates(
    kernels: Mapping[str, Kernel], *draws: ImageDraws, chunk: int = CHUNK
) -> dict[str, np.ndarray]:
    """Return each kernel's value in every replicate, float64 [B], NaN where undefined; all share the same draws.

    Args:
        kernels: Of one weighting each, or of as many as there are `draws`.
        draws: One, or those of the source images and of the donor images.
        chunk: Replicates worked on at once; changes no bit.
    """
    parts: dict[str, list[np.ndarray]] = {name: [] for name in kernels}
    for weights in zip(*(of.weights(chunk=chunk) for of in draws), strict=True):
        for name, kernel in kernels.items():
            parts[name].append(kernel(*weights))
    return {name: np.concatenate([np.empty(0), *values]) for name, values in parts.items()}


def interval(replicates: np.ndarray) -> Interval:
    """Return the 95% percentile interval of float64 [B], linear between replicates; NaN are left out and counted."""
    defined = replicates[~np.isnan(replicates)]
    n_undefined = len(replicates) - len(defined)
    if len(defined) == 0:
        return Interval(low=None, high=None, n_replicates=len(replicates), n_undefined=n_undefined)
    low, high = np.percentile(defined, PERCENTILES)
    return Interval(low=float(low), high=float(high), n_replicates=len(replicates), n_undefined=n_undefined)

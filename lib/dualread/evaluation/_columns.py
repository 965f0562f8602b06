"""Metrics as functions of the columns of joined rows, and the rows that they rest on."""

from collections.abc import Callable

import numpy as np
import polars as pl

from dualread.metrics import grounding
from dualread.stats.bootstrap import ImageDraws
from dualread.stats.kernels import Kernel, mean_kernel, two_way_mean_kernel

Metric = Callable[[pl.DataFrame], float]
Mask = Callable[[pl.DataFrame], np.ndarray]


def on_columns(metric: Callable[..., float], *columns: str) -> Metric:
    """Return `metric` of these columns."""
    return lambda frame: metric(*(frame[column].to_numpy() for column in columns))


def all_rows(frame: pl.DataFrame) -> np.ndarray:
    """Return the mask of metrics that rest on every row."""
    return np.ones(len(frame), dtype=np.bool_)


def decisive(other: str) -> Mask:
    """Return the mask of rows that are correct on the own image and wrong under `other` (donor, fixed, shuffled)."""
    return lambda frame: grounding.decisive(frame["correct_real"].to_numpy(), frame[f"correct_{other}"].to_numpy())


def strict_decisive(frame: pl.DataFrame) -> np.ndarray:
    """Return the mask of decisive donor pairs with one canonical answer on both images."""
    names = ("correct_real", "correct_donor", "canonical_answer_real", "canonical_answer_donor")
    mask = decisive("donor")(frame)
    # Texts are what takes time, and the other rows need none.
    mask[mask] = grounding.strict_decisive(*(frame.filter(mask)[name].to_numpy() for name in names))
    return mask


def power(mask: Mask, field: str, images: str = "donor_image_id") -> Metric:
    """Return a field of `grounding.power` as a metric; `images` is the column of the other image."""

    def metric(frame: pl.DataFrame) -> float:
        chosen = frame.filter(mask(frame))
        counts = grounding.power(all_rows(chosen), chosen["source_image_id"].to_list(), chosen[images].to_list())
        return float(getattr(counts, field))

    return metric


def preference_kernel(frame: pl.DataFrame, other: str, mask: Mask, draws: ImageDraws) -> Kernel:
    """Return the kernel of the share of masked rows with more confidence on the own image than under `other`."""
    wins = grounding.preference(frame["confidence_real"].to_numpy(), frame[f"confidence_{other}"].to_numpy())
    chosen, cluster = mask(frame), draws.cluster_of(frame["source_image_id"])
    return mean_kernel(wins[chosen], cluster[chosen], len(draws.image_ids))


def two_way_preference_kernel(frame: pl.DataFrame, mask: Mask, sources: ImageDraws, donors: ImageDraws) -> Kernel:
    """Return the kernel of that share under the donor, of two weightings: of the source images, of the donor images."""
    wins = grounding.preference(frame["confidence_real"].to_numpy(), frame["confidence_donor"].to_numpy())
    chosen = mask(frame)
    source = sources.cluster_of(frame["source_image_id"])[chosen]
    donor = donors.cluster_of(frame["donor_image_id"])[chosen]
    return two_way_mean_kernel(wins[chosen], source, donor, len(sources.image_ids), len(donors.image_ids))

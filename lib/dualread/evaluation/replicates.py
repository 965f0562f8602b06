"""The replicates of every metric of answers by which methods are compared: one value per resample of the images.

All methods share the resamples of a cell, so that two methods can be subtracted replicate by replicate. An image is
resampled with all its questions. Percentiles of replicates are intervals, after each metric's replicates have got the
spread that its images call for (`statistics.t_replicates`). Means over pairs of images have no replicates (see
`pair_metrics`).
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy  # loads its submodules when they are first used

from dualread.evaluation.answer_metrics import ALL_METRICS, FURTHER_METRICS, WITH_REPLICATES
from dualread.evaluation.columns import CellColumns
from dualread.evaluation.controls import SHUFFLED_AUROC
from dualread.evaluation.metric import BuildKernel
from dualread.evaluation.statistics.bootstrap import ClusterDraws, image_cluster_replicates
from dualread.evaluation.statistics.clusters import Clusters
from dualread.evaluation.statistics.kernels import Kernel, auroc_kernel
from dualread.evaluation.statistics.t_intervals import Limits
from dualread.evaluation.statistics.t_replicates import Spread, spread_of_ranks, t_stretch

_Key = tuple[Any, tuple[str, ...]]  # a cell, and the metrics that share a kernel, in its order
_SHARING: dict[BuildKernel, tuple[str, ...]] = {}
for _name in WITH_REPLICATES:
    if _build := ALL_METRICS[_name].kernel:
        _SHARING[_build] = (*_SHARING.get(_build, ()), _name)


class MetricReplicates(NamedTuple):
    """A metric in each resample, float64 [B], and on the images themselves, and what spreads the replicates out."""

    values: np.ndarray
    estimate: float
    spread: Spread | None
    images: Clusters

    def spread_out(self) -> np.ndarray:
        """Return the replicates with their spread, float64 [B]; all NaN where the images have no interval."""
        if self.images.in_effect.reason:
            return np.full(len(self.values), np.nan)
        return self.values if self.spread is None else self.spread(self.values, self.estimate, self.images, None)

    def limits(self, alpha: float) -> Limits:
        """Return the interval that does not cover with the probability `alpha`; None if there is none."""
        if self.images.in_effect.reason or not np.isfinite(self.values).any():
            return None
        if self.spread is not None:
            ends = np.sort(self.spread(self.values, self.estimate, self.images, alpha))
        else:  # the values vary as much as an interval of 95% needs
            df = max(self.images.df(self.images.n_rarer - 1.0), 1.0)
            steps = float(scipy.special.stdtrit(df, 1.0 - alpha / 2)) / t_stretch(df)
            ends = self.estimate + np.nanstd(self.values) * np.array([-steps, steps])
        return None if np.isnan(ends).any() else (float(ends[0]), float(ends[1]))


def replicates(
    cells: Mapping[str, CellColumns], draws: ClusterDraws, further: Collection[str]
) -> dict[str, dict[str, np.ndarray]]:
    """Return, by cell, the replicates of `WITH_REPLICATES`, of further ones `further`, and of `SHUFFLED_AUROC`.

    Each is float64 [B], NaN where it is undefined. All of a metric are NaN where the images on which it rests have
    no interval (`statistics.clusters.InEffect`). A cell without answers is not resampled. Images are drawn once for all
    cells, which are of the same images: a cell and its parts.
    """
    resampled = raw_replicates(cells, draws, further)
    computed = _computed(further)
    no_values = np.full(draws.replicates if draws.cluster_ids else 0, np.nan)
    return {
        cell: {
            name: resampled[cell, name].spread_out() if (cell, name) in resampled else no_values
            for name in (*computed, *(() if isinstance(columns.shuffled, str) else (SHUFFLED_AUROC.name,)))
        }
        for cell, columns in cells.items()
    }


def _computed(further: Collection[str]) -> list[str]:
    return [name for name in WITH_REPLICATES if name in further or name not in FURTHER_METRICS]


def raw_replicates(
    cells: Mapping[Any, CellColumns], draws: ClusterDraws, further: Collection[str]
) -> dict[tuple[Any, str], MetricReplicates]:
    """Return, by cell and metric, what `replicates` are made of; nothing for a cell without answers."""
    kernels: dict[_Key, Kernel] = {}
    images_of: dict[_Key, Clusters] = {}
    computed, n_images = set(_computed(further)), len(draws.cluster_ids)
    for cell, columns in cells.items():
        answers, shuffled = columns.answers, columns.shuffled
        if not len(answers):
            continue
        image = answers.cluster("cluster_id", draws)
        images = Clusters.of(answers["correct"], image, n_images)
        for build, names in _SHARING.items():
            if not computed.isdisjoint(names):
                kernels[cell, names] = images.resampled(build(answers, image, n_images))
                images_of[cell, names] = images
        if not isinstance(shuffled, str):
            confidence, correct = shuffled["confidence_shuffled"], shuffled["correct_shuffled"]
            image, key = shuffled.cluster("source_cluster_id", draws), (cell, (SHUFFLED_AUROC.name,))
            images_of[key] = Clusters.of(correct, image, n_images)
            kernels[key] = images_of[key].resampled(auroc_kernel(confidence, correct, image, n_images))
    n_rows = max((len(columns.answers) for columns in cells.values()), default=0)
    values = image_cluster_replicates(kernels, draws, n_rows=n_rows) if kernels else {}
    resampled = {}
    for (cell, names), kernel in kernels.items():
        # On the images themselves, each is drawn once.
        estimates = kernel(np.ones((n_images, 1))).reshape(len(names))
        by_metric = values[cell, names].reshape(len(names), -1)
        for name, estimate, replicates_of in zip(names, estimates.tolist(), by_metric, strict=True):
            if name in computed or name == SHUFFLED_AUROC.name:
                spread = spread_of_ranks if name == SHUFFLED_AUROC.name else ALL_METRICS[name].spread
                resampled[cell, name] = MetricReplicates(replicates_of, estimate, spread, images_of[cell, names])
    return resampled

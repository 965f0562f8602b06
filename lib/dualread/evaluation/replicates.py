"""The replicates of every metric of answers by which methods are compared: one value per resample of the images.

All methods share the resamples of a cell, so that two methods can be subtracted replicate by replicate. An image is
resampled with all its questions. Percentiles of replicates are intervals, after each metric's replicates have got the
spread that its images call for (`statistics.t_replicates`). Means over pairs of images have no replicates (see
`pair_metrics`).
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import scipy  # loads its submodules when they are first used

from dualread.evaluation.answer_metrics import ALL_METRICS, FURTHER_METRICS, WITH_REPLICATES
from dualread.evaluation.columns import CellColumns, Columns
from dualread.evaluation.controls import SHUFFLED_AUROC
from dualread.evaluation.metric import BuildKernel
from dualread.evaluation.statistics.bootstrap import ClusterDraws, image_cluster_replicates
from dualread.evaluation.statistics.clusters import Clusters
from dualread.evaluation.statistics.kernels import Kernel, auroc_kernel
from dualread.evaluation.statistics.t_intervals import Limits
from dualread.evaluation.statistics.t_replicates import Spread, spread_of_ranks, t_stretch


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
    cells.

    Args:
        cells: Cells of the same images, by any name: a cell and its parts.
        draws: Resamples of the images.
        further: Names of `FURTHER_METRICS`; of the others of them, nothing is returned.
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
    cells: Mapping[str, CellColumns], draws: ClusterDraws, further: Collection[str]
) -> dict[tuple[str, str], MetricReplicates]:
    """Return, by cell and metric, what `replicates` are made of; nothing for a cell without answers."""
    computed = _computed(further)
    kernels: dict[str | tuple[str, ...], Kernel] = {}
    spreads: dict[tuple[str, str], tuple[Spread | None, Clusters]] = {}
    for cell, columns in cells.items():
        if len(columns.answers):
            cell_kernels, cell_spreads = _of_cell(columns, draws, computed)
            for names, kernel in cell_kernels.items():
                in_cell = tuple(f"{cell}/{name}" for name in names) if isinstance(names, tuple) else f"{cell}/{names}"
                kernels[in_cell] = kernel
            spreads |= {(cell, name): spread for name, spread in cell_spreads.items()}
    n_rows = max((len(columns.answers) for columns in cells.values()), default=0)
    values = image_cluster_replicates(kernels, draws, n_rows=n_rows) if kernels else {}
    estimates = _estimates(kernels, len(draws.cluster_ids))
    return {
        (cell, name): MetricReplicates(values[f"{cell}/{name}"], estimates[f"{cell}/{name}"], *spread)
        for (cell, name), spread in spreads.items()
    }


def _of_cell(
    cell: CellColumns, draws: ClusterDraws, computed: Collection[str]
) -> tuple[dict[str | tuple[str, ...], Kernel], dict[str, tuple[Spread | None, Clusters]]]:
    """Return the kernel of each metric of a cell, and its spread with the images on which it rests."""
    answers, n_images = cell.answers, len(draws.cluster_ids)
    images = Clusters.of(answers["correct"], answers.cluster("cluster_id", draws), n_images)
    kernels = {names: images.resampled(kernel) for names, kernel in _kernels(answers, draws, computed).items()}
    spreads = {name: (ALL_METRICS[name].spread, images) for name in computed}
    if not isinstance(shuffled := cell.shuffled, str):
        confidence, correct = shuffled["confidence_shuffled"], shuffled["correct_shuffled"]
        image = shuffled.cluster("source_cluster_id", draws)
        images = Clusters.of(correct, image, n_images)
        kernels[SHUFFLED_AUROC.name] = images.resampled(auroc_kernel(confidence, correct, image, n_images))
        spreads[SHUFFLED_AUROC.name] = (spread_of_ranks, images)
    return kernels, spreads


def _kernels(answers: Columns, draws: ClusterDraws, computed: Collection[str]) -> dict[str | tuple[str, ...], Kernel]:
    """Return the kernel of each metric; all metrics that share one, computed or not, are its key together."""
    sharing: dict[BuildKernel, list[str]] = {}
    for name in WITH_REPLICATES:
        if build := ALL_METRICS[name].kernel:
            sharing.setdefault(build, []).append(name)
    image, n_images = answers.cluster("cluster_id", draws), len(draws.cluster_ids)
    return {
        names[0] if len(names) == 1 else tuple(names): build(answers, image, n_images)
        for build, names in sharing.items()
        if not set(names).isdisjoint(computed)
    }


def _estimates(kernels: Mapping[str | tuple[str, ...], Kernel], n_clusters: int) -> dict[str, float]:
    """Return the value of each metric on the images themselves, each drawn once."""
    estimates = {}
    for names, kernel in kernels.items():
        values = kernel(np.ones((n_clusters, 1)))
        for name, row in zip(names, values, strict=True) if isinstance(names, tuple) else [(names, values)]:
            estimates[name] = float(row[0])
    return estimates

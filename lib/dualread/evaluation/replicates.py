"""The replicates of every metric of answers by which methods are compared: one value per resample of the images.

All methods share the resamples of a cell, so that two methods can be subtracted replicate by replicate. An image is
resampled with all its questions. Percentiles of replicates are intervals, after each metric's replicates have got the
spread that its images call for (`statistics.t_replicates`). Means over pairs of images have no replicates (see
`pair_metrics`).
"""

from collections.abc import Mapping

import numpy as np

from dualread.evaluation.answer_metrics import ANSWER_METRICS, WITH_REPLICATES
from dualread.evaluation.columns import CellColumns, Columns
from dualread.evaluation.controls import SHUFFLED_AUROC
from dualread.evaluation.metric import BuildKernel
from dualread.evaluation.statistics.bootstrap import ClusterDraws, image_cluster_replicates
from dualread.evaluation.statistics.clusters import Clusters
from dualread.evaluation.statistics.kernels import Kernel, auroc_kernel
from dualread.evaluation.statistics.t_replicates import Spread, spread_of_ranks


def replicates(cells: Mapping[str, CellColumns], draws: ClusterDraws) -> dict[str, dict[str, np.ndarray]]:
    """Return, by cell, the replicates of each of `WITH_REPLICATES`, and of `SHUFFLED_AUROC` where it has rows.

    Each is float64 [B], NaN where it is undefined. All of a metric are NaN where the images on which it rests have
    no interval (`statistics.clusters.InEffect`). A cell without answers is not resampled. Images are drawn once for all
    cells.

    Args:
        cells: Cells of the same images, by any name: a cell and its parts.
        draws: Resamples of the images.
    """
    kernels: dict[str | tuple[str, ...], Kernel] = {}
    spreads: dict[str, tuple[Spread | None, Clusters]] = {}
    for cell, columns in cells.items():
        if len(columns.answers):
            found_kernels, found_spreads = _of_cell(columns, draws)
            kernels |= {_within(cell, names): kernel for names, kernel in found_kernels.items()}
            spreads |= {f"{cell}/{name}": spread for name, spread in found_spreads.items()}
    n_rows = max((len(columns.answers) for columns in cells.values()), default=0)
    values = image_cluster_replicates(kernels, draws, n_rows=n_rows) if kernels else {}
    estimates = _estimates(kernels, len(draws.cluster_ids))
    for name, (spread, images) in spreads.items():
        if images.in_effect.reason:
            values[name] = np.full(draws.replicates, np.nan)
        elif spread is not None:
            values[name] = spread(values[name], estimates[name], images)
    nothing = np.full(draws.replicates if draws.cluster_ids else 0, np.nan)
    return {
        cell: {name: values.get(f"{cell}/{name}", nothing) for name in _names(columns)}
        for cell, columns in cells.items()
    }


def _names(cell: CellColumns) -> tuple[str, ...]:
    return (*WITH_REPLICATES, *(() if isinstance(cell.shuffled, str) else (SHUFFLED_AUROC.name,)))


def _within(cell: str, names: str | tuple[str, ...]) -> str | tuple[str, ...]:
    return tuple(f"{cell}/{name}" for name in names) if isinstance(names, tuple) else f"{cell}/{names}"


def _of_cell(
    cell: CellColumns, draws: ClusterDraws
) -> tuple[dict[str | tuple[str, ...], Kernel], dict[str, tuple[Spread | None, Clusters]]]:
    """Return the kernel of each metric of a cell, and its spread with the images on which it rests."""
    answers, n_images = cell.answers, len(draws.cluster_ids)
    images = Clusters.of(answers["correct"], answers.cluster("cluster_id", draws), n_images)
    kernels = {names: images.resampled(kernel) for names, kernel in _kernels(answers, draws).items()}
    spreads = {name: (ANSWER_METRICS[name].spread, images) for name in WITH_REPLICATES}
    if not isinstance(shuffled := cell.shuffled, str):
        confidence, correct = shuffled["confidence_shuffled"], shuffled["correct_shuffled"]
        image = shuffled.cluster("source_cluster_id", draws)
        images = Clusters.of(correct, image, n_images)
        kernels[SHUFFLED_AUROC.name] = images.resampled(auroc_kernel(confidence, correct, image, n_images))
        spreads[SHUFFLED_AUROC.name] = (spread_of_ranks, images)
    return kernels, spreads


def _kernels(answers: Columns, draws: ClusterDraws) -> dict[str | tuple[str, ...], Kernel]:
    """Return the kernel of each metric; metrics that share one are its key together."""
    sharing: dict[BuildKernel, list[str]] = {}
    for name in WITH_REPLICATES:
        if build := ANSWER_METRICS[name].kernel:
            sharing.setdefault(build, []).append(name)
    image, n_images = answers.cluster("cluster_id", draws), len(draws.cluster_ids)
    return {
        names[0] if len(names) == 1 else tuple(names): build(answers, image, n_images)
        for build, names in sharing.items()
    }


def _estimates(kernels: Mapping[str | tuple[str, ...], Kernel], n_clusters: int) -> dict[str, float]:
    """Return the value of each metric on the images themselves, each drawn once."""
    estimates = {}
    for names, kernel in kernels.items():
        values = kernel(np.ones((n_clusters, 1)))
        for name, row in zip(names, values, strict=True) if isinstance(names, tuple) else [(names, values)]:
            estimates[name] = float(row[0])
    return estimates

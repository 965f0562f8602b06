"""The replicates of every metric whose interval is a percentile interval: one value per resample of the images.

All methods share the resamples of a cell, so that two methods can be subtracted replicate by replicate. An image is
resampled with all its questions. Means over pairs of images have no replicates (see `pair_means`).
"""

import numpy as np

from dualread.evaluation.columns import CellColumns, Columns
from dualread.evaluation.metrics.calibration_error import bins
from dualread.evaluation.metrics.selective import HIGH_CONFIDENCE
from dualread.evaluation.statistics.bootstrap import ImageDraws, chunk_of, image_cluster_replicates
from dualread.evaluation.statistics.kernels import Kernel, auroc_kernel, ece_kernel, mean_kernel, rank_kernel

ANSWERS = ("accuracy", "auroc", "brier", "ece15", "aurc", "hce90")
SHUFFLED_AUROC = "shuffled_auroc"
# A study stores the replicates of those by which its tables compare methods.
KEPT = ("auroc", "brier")
INTERVALS = (*ANSWERS, SHUFFLED_AUROC)


def replicates(cell: CellColumns, draws: ImageDraws) -> dict[str, np.ndarray]:
    """Return the replicates of each of `INTERVALS` that has rows, float64 [B]; NaN where a replicate is undefined."""
    kernels = _of_answers(cell.answers, draws)
    if not isinstance(shuffled := cell.shuffled, str):
        confidence, correct = shuffled["confidence_shuffled"], shuffled["correct_shuffled"]
        cluster = shuffled.cluster("source_image_id", draws)
        kernels[SHUFFLED_AUROC] = auroc_kernel(confidence, correct, cluster, len(draws.image_ids))
    return image_cluster_replicates(kernels, draws, chunk=chunk_of(len(cell.answers)))


def _of_answers(answers: Columns, draws: ImageDraws) -> dict[str | tuple[str, ...], Kernel]:
    confidence, correct = answers["confidence"], answers["correct"]
    images = answers.cluster("image_id", draws), len(draws.image_ids)
    wrong_and_high = (confidence >= HIGH_CONFIDENCE) & ~correct
    return {
        "accuracy": mean_kernel(correct.astype(np.float64), *images),
        ("auroc", "aurc"): rank_kernel(confidence, correct, *images),
        "brier": mean_kernel((confidence - correct) ** 2, *images),
        "ece15": ece_kernel(confidence, correct, bins(confidence), *images),
        "hce90": mean_kernel(wrong_and_high.astype(np.float64), *images),
    }

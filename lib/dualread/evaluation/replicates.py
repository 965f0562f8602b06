"""The replicates of every metric of answers by which methods are compared: one value per resample of the images.

All methods share the resamples of a cell, so that two methods can be subtracted replicate by replicate. An image is
resampled with all its questions. Percentiles of replicates are intervals, after each metric's replicates have got the
spread that its images call for (`statistics.t_replicates`). Means over pairs of images have no replicates (see
`pair_means`), and the ECE has none, because a resample adds the chance error that it contains a second time (see
`metrics.calibration_chance`).
"""

from collections.abc import Mapping
from math import sqrt

import numpy as np

from dualread.errors import UndefinedMetricError
from dualread.evaluation.columns import CellColumns, Columns
from dualread.evaluation.metrics.calibration_chance import leave_one_image_out, squared_calibration_error
from dualread.evaluation.metrics.selective import HIGH_CONFIDENCE
from dualread.evaluation.statistics.bootstrap import ImageDraws, chunk_of, image_cluster_replicates
from dualread.evaluation.statistics.kernels import Kernel, auroc_kernel, linear_kernel, mean_kernel, rank_kernel
from dualread.evaluation.statistics.t_replicates import binomial_replicates, t_replicates, t_stretch

SQUARED_ERROR = "squared_calibration_error"
ANSWERS = ("accuracy", "auroc", "brier", SQUARED_ERROR, "aurc", "hce90")
SHUFFLED_AUROC = "shuffled_auroc"
# Metrics of ranks rest on the images with the rarer kind of answer.
RANKS = ("auroc", "aurc", SHUFFLED_AUROC)
# With fewer of these images, an interval is wide, and covers more often than 95%.
FEW_IMAGES = 10
# With fewer, nothing is known of what the rarer kind of answer would add to a mean.
FEWEST_IMAGES = 5
# These are marked where images are few.
RARER_KIND = (*RANKS, "brier", SQUARED_ERROR)
# Differences of these rest on few images where most answers are right, or few are wrong and confident.
SKEWED = ("aurc", "hce90")
# A study stores the replicates of those by which its tables compare methods.
KEPT = ("auroc", "brier", SQUARED_ERROR)
# These have percentile intervals. Rates have those of `statistics.proportion`.
INTERVALS = ("auroc", "brier", SQUARED_ERROR, "aurc", SHUFFLED_AUROC)


def replicates(cell: CellColumns, draws: ImageDraws) -> dict[str, np.ndarray]:
    """Return the replicates of each of `ANSWERS`, and of `SHUFFLED_AUROC` where it has rows, float64 [B].

    A replicate is NaN where it is undefined. All of a metric are NaN where the images on which it rests are fewer than
    two.
    """
    kernels = _of_answers(cell.answers, draws)
    labels = {name: (cell.answers["correct"], cell.answers.codes("image_id")) for name in ANSWERS}
    if not isinstance(shuffled := cell.shuffled, str):
        confidence, correct = shuffled["confidence_shuffled"], shuffled["correct_shuffled"]
        cluster = shuffled.cluster("source_image_id", draws)
        kernels[SHUFFLED_AUROC] = auroc_kernel(confidence, correct, cluster, len(draws.image_ids))
        labels = {**labels, SHUFFLED_AUROC: (correct, cluster)}
    found = image_cluster_replicates(kernels, draws, chunk=chunk_of(len(cell.answers)))
    estimates = _estimates(kernels, len(draws.image_ids))
    for name in found.keys() - {SQUARED_ERROR}:
        found[name] = _spread(name, found[name], estimates[name], *images_of(*labels[name]))
    return found


def _spread(name: str, replicates: np.ndarray, estimate: float, n_images: int, n_rarer: int) -> np.ndarray:
    """Return the replicates of a metric, spread for the images on which its variance rests; see `images_of`."""
    if name in RANKS:  # those of answers that are all right are undefined, or depend on nothing else
        return t_replicates(replicates, estimate, n_rarer or n_images, n_images)
    if estimate in (0.0, 1.0):
        return t_replicates(replicates, estimate, n_images, n_images)
    if n_rarer < FEWEST_IMAGES:
        return binomial_replicates(replicates, estimate, n_images)
    # The variance of a mean of losses is, like that of a share, mostly a sum of squares of the rarer kind.
    return t_replicates(replicates, estimate, min(n_images, 2 * n_rarer + 1), n_images)


def _estimates(kernels: Mapping[str | tuple[str, ...], Kernel], n_clusters: int) -> dict[str, float]:
    """Return the value of each metric on the images themselves, each drawn once."""
    found = {}
    for names, kernel in kernels.items():
        values = kernel(np.ones((n_clusters, 1)))
        for name, row in zip(names, values, strict=True) if isinstance(names, tuple) else [(names, values)]:
            found[name] = float(row[0])
    return found


def images_of(correct: np.ndarray, image: np.ndarray) -> tuple[int, int]:
    """Return the number of images, and of those with the rarer kind of answer: right ones, or wrong ones.

    Args:
        correct: bool [n].
        image: int [n], >= 0.
    """
    with_right, with_wrong = (np.bincount(image[kind], minlength=1) > 0 for kind in (correct, ~correct))
    n_right, n_wrong = int(with_right.sum()), int(with_wrong.sum())
    return int(np.count_nonzero(np.bincount(image))), min(n_right, n_wrong)


def _of_answers(answers: Columns, draws: ImageDraws) -> dict[str | tuple[str, ...], Kernel]:
    confidence, correct = answers["confidence"], answers["correct"]
    images = answers.cluster("image_id", draws), len(draws.image_ids)
    wrong_and_high = (confidence >= HIGH_CONFIDENCE) & ~correct
    return {
        "accuracy": mean_kernel(correct.astype(np.float64), *images),
        ("auroc", "aurc"): rank_kernel(confidence, correct, *images),
        "brier": mean_kernel((confidence - correct) ** 2, *images),
        SQUARED_ERROR: _squared_error_kernel(confidence, correct, *images),
        "hce90": mean_kernel(wrong_and_high.astype(np.float64), *images),
    }


def _squared_error_kernel(confidence: np.ndarray, correct: np.ndarray, cluster: np.ndarray, n_clusters: int) -> Kernel:
    """Return the kernel of the squared calibration error: linear, with the variance of the jackknife over images.

    On a resample, pairs of one image with its copy would be no pairs of two images. Therefore each image changes the
    value as much as leaving it out does, so that the sum of squared changes is the variance of the jackknife, and times
    `t_stretch` for the images with the rarer kind of answer, on which the variance rests.
    """
    n_images, n_rarer = images_of(correct, cluster)
    try:
        value = squared_calibration_error(confidence, correct, cluster)
    except UndefinedMetricError:
        return _undefined
    left_out = leave_one_image_out(confidence, correct, cluster)
    if np.isnan(left_out).any() or n_rarer < 2:
        return _undefined
    change, stretch = np.zeros(n_clusters), sqrt((n_images - 1) / n_images) * t_stretch(n_rarer)
    change[np.unique(cluster)] = (np.sort(left_out).mean() - left_out) * stretch
    return linear_kernel(value, change)


def _undefined(weights: np.ndarray) -> np.ndarray:
    return np.full(weights.shape[1], np.nan)

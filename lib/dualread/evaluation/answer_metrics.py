"""The metrics of answers on the original images, one entry each: how it is computed, and what is known of other images.

An entry with a `kernel` has replicates, one value per resample of the images, by which two methods are compared. A rate
has the interval of a share, other metrics with a kernel the percentiles of their replicates. The ECE has no kernel,
because a resample adds the chance error that it contains a second time (see `metrics.calibration_chance`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np

from dualread.errors import UndefinedMetricError
from dualread.evaluation.channel import CHANNEL_METRICS, COUNTS
from dualread.evaluation.columns import Columns, Metric, on_columns
from dualread.evaluation.metrics import (
    calibration_chance,
    calibration_error,
    correctness,
    discrimination,
    selective,
)
from dualread.evaluation.statistics.kernels import Kernel, linear_kernel, mean_kernel, rank_kernel
from dualread.evaluation.statistics.t_replicates import Spread, spread_of_losses, spread_of_ranks, t_stretch

# The ECE that calibrated confidences reach by chance. It needs random signs, and its mean over data sets says nothing.
NOISE_FLOOR = "ece15_noise_floor"

# Builds a kernel from the answers, the number of each answer's image, int [n], and the number of images.
BuildKernel = Callable[[Columns, np.ndarray, int], Kernel]


@dataclass(frozen=True, kw_only=True)
class AnswerMetric:
    """A metric of answers.

    Attributes:
        value: Returns the metric of rows; raises UndefinedMetricError where it has no value.
        counts: Of a rate, the rows that it counts, bool [n].
        kernel: Builds what computes the replicates; one that several metrics share gives them in the order below.
        spread: Widens the replicates for the images on which the variance rests, of a metric in [0, 1]; None if the
            kernel has done so, or for plain percentiles, which cover too rarely on few images.
        is_of_probabilities: Whether confidences have to be probabilities; other metrics compare them with each other.
        is_skewed: Whether a difference rests on few images where most answers are right, or few wrong and confident.
        is_signed: Whether the value can be negative.
        is_stored: Whether a study stores the replicates, because its tables compare methods by the metric.
        is_count: Whether it is a count, whose mean over data sets says nothing.
    """

    value: Metric
    counts: Callable[[Columns], np.ndarray] | None = None
    kernel: BuildKernel | None = None
    spread: Spread | None = None
    is_of_probabilities: bool = False
    is_skewed: bool = False
    is_signed: bool = False
    is_stored: bool = False
    is_count: bool = False

    @property
    def is_of_ranks(self) -> bool:
        """Whether a difference rests on the images with the rarer kind of answer, right or wrong."""
        return self.spread is spread_of_ranks


def _mean_of(losses: Callable[[Columns], np.ndarray]) -> BuildKernel:
    return lambda answers, image, n_images: mean_kernel(losses(answers).astype(np.float64), image, n_images)


def _ranks(answers: Columns, image: np.ndarray, n_images: int) -> Kernel:
    """Return the kernel of AUROC and AURC, which need to know the same of a resample."""
    return rank_kernel(answers["confidence"], answers["correct"], image, n_images)


def _squared_calibration_error(answers: Columns, image: np.ndarray, n_images: int) -> Kernel:
    """Return the kernel of the squared calibration error: linear, with the variance of the jackknife over images.

    On a resample, pairs of one image with its copy would be no pairs of two images. Therefore each image changes the
    value as much as leaving it out does, so that the sum of squared changes is the variance of the jackknife, and times
    `t_stretch` for the images with the rarer kind of answer, on which the variance rests.
    """
    confidence, correct = answers["confidence"], answers["correct"]
    n_shown, n_rarer = images_of(correct, image)
    try:
        value = calibration_chance.squared_calibration_error(confidence, correct, image)
    except UndefinedMetricError:
        return _undefined
    left_out = calibration_chance.leave_one_image_out(confidence, correct, image)
    if np.isnan(left_out).any() or n_rarer < 2:
        return _undefined
    change, stretch = np.zeros(n_images), sqrt((n_shown - 1) / n_shown) * t_stretch(n_rarer)
    change[np.unique(image)] = (np.sort(left_out).mean() - left_out) * stretch
    return linear_kernel(value, change)


def _undefined(weights: np.ndarray) -> np.ndarray:
    return np.full(weights.shape[1], np.nan)


def images_of(correct: np.ndarray, image: np.ndarray) -> tuple[int, int]:
    """Return the number of images, and of those with the rarer kind of answer: right ones, or wrong ones.

    Args:
        correct: bool [n].
        image: int [n], >= 0.
    """
    with_right, with_wrong = (np.bincount(image[kind], minlength=1) > 0 for kind in (correct, ~correct))
    n_right, n_wrong = int(with_right.sum()), int(with_wrong.sum())
    return int(np.count_nonzero(np.bincount(image))), min(n_right, n_wrong)


def _is_correct(rows: Columns) -> np.ndarray:
    return rows["correct"]


def _is_confidently_wrong(rows: Columns) -> np.ndarray:
    return (rows["confidence"] >= selective.HIGH_CONFIDENCE) & ~rows["correct"]


ANSWER_METRICS: dict[str, AnswerMetric] = {
    "accuracy": AnswerMetric(
        value=on_columns(correctness.accuracy, "correct"),
        counts=_is_correct,
        kernel=_mean_of(_is_correct),
        spread=spread_of_losses,
    ),
    "auroc": AnswerMetric(
        value=on_columns(discrimination.auroc, "confidence", "correct"),
        kernel=_ranks,
        spread=spread_of_ranks,
        is_stored=True,
    ),
    "within_question_auroc": AnswerMetric(
        value=lambda rows: discrimination.within_question_auroc(
            rows["confidence"], rows["correct"], rows.codes("question_key")
        )
    ),
    "ece15": AnswerMetric(value=on_columns(calibration_error.ece, "confidence", "correct"), is_of_probabilities=True),
    "squared_calibration_error": AnswerMetric(
        value=lambda rows: calibration_chance.squared_calibration_error(
            rows["confidence"], rows["correct"], rows.codes("image_id")
        ),
        kernel=_squared_calibration_error,
        is_of_probabilities=True,
        is_signed=True,
        is_stored=True,
    ),
    "brier": AnswerMetric(
        value=on_columns(calibration_error.brier, "confidence", "correct"),
        kernel=_mean_of(lambda rows: (rows["confidence"] - rows["correct"]) ** 2),
        spread=spread_of_losses,
        is_of_probabilities=True,
        is_stored=True,
    ),
    "aurc": AnswerMetric(
        value=on_columns(selective.aurc, "confidence", "correct"),
        kernel=_ranks,
        spread=spread_of_ranks,
        is_skewed=True,
    ),
    "hce90": AnswerMetric(
        value=on_columns(selective.hce, "confidence", "correct"),
        counts=_is_confidently_wrong,
        kernel=_mean_of(_is_confidently_wrong),
        spread=spread_of_losses,
        is_of_probabilities=True,
        is_skewed=True,
    ),
    "calibration_in_the_large": AnswerMetric(
        value=on_columns(calibration_error.calibration_in_the_large, "confidence", "correct"), is_of_probabilities=True
    ),
    "calibration_slope": AnswerMetric(
        value=on_columns(calibration_error.calibration_slope, "confidence", "correct"), is_of_probabilities=True
    ),
    **{name: AnswerMetric(value=value, is_count=name in COUNTS) for name, value in CHANNEL_METRICS.items()},
    # A difference of metrics of ranks rests on the images with the rarer kind of answer.
    "images_with_right": AnswerMetric(
        value=lambda rows: float(rows.n_distinct("image_id", rows["correct"])), is_count=True
    ),
    "images_with_wrong": AnswerMetric(
        value=lambda rows: float(rows.n_distinct("image_id", ~rows["correct"])), is_count=True
    ),
}
# Two methods can be compared by these.
WITH_REPLICATES = tuple(name for name, metric in ANSWER_METRICS.items() if metric.kernel)
# A study stores their replicates.
STORED = tuple(name for name, metric in ANSWER_METRICS.items() if metric.is_stored)
# These have intervals of percentiles, which are wide, and cover more often than 95%, on fewer than `FEW_IMAGES` images
# with the rarer kind of answer.
WITH_PERCENTILES = tuple(name for name in WITH_REPLICATES if not ANSWER_METRICS[name].counts)
FEW_IMAGES = 10

"""The metrics of answers on the original images, one declaration each: print, computation, and spread.

The ECE has no kernel, because a resample adds the chance error that it contains a second time (see
`metrics.calibration_chance`).
"""

from collections.abc import Callable
from math import inf, sqrt
from typing import Any

import numpy as np

from dualread.errors import UndefinedMetricError
from dualread.evaluation.columns import Columns, on_columns
from dualread.evaluation.metric import AnswerMetric, BuildKernel
from dualread.evaluation.metrics import calibration_chance, calibration_error, discrimination, selective
from dualread.evaluation.statistics.clusters import Clusters, effective_number, undefined_kernel
from dualread.evaluation.statistics.kernels import Kernel, error_kernel, linear_kernel, mean_kernel, rank_kernel
from dualread.evaluation.statistics.t_replicates import (
    spread_at_tpr,
    spread_of_log_losses,
    spread_of_losses,
    spread_of_ranks,
    t_stretch,
)

# It needs random signs, so that `estimates` computes it, and its mean over data sets says nothing.
NOISE_FLOOR = "ece15_noise_floor"


# What a source of confidences can express: how often it gives a valid value, and how many different values. Unique
# values and endpoints are counted among valid values only, without the imputed 0.5 (paper, "Confidence-support audit");
# all other metrics keep imputed rows.


def imputed_share(rows: Columns) -> float:
    """Return the share of rows without a valid confidence, in [0, 1]."""
    if len(rows) == 0:
        raise UndefinedMetricError("no rows")
    return int(np.count_nonzero(rows["imputed"])) / len(rows)


def unique_confidences(rows: Columns) -> float:
    """Return the number of different valid confidences; undefined where none is valid."""
    return float(len(np.unique(_valid(rows))))


def endpoint_share(rows: Columns) -> float:
    """Return the share of valid confidences that are exactly 0 or 1, in [0, 1]; undefined where none is valid."""
    valid = _valid(rows)
    return int(np.count_nonzero((valid == 0.0) | (valid == 1.0))) / len(valid)


def confidence_entropy(rows: Columns) -> float:
    """Return the entropy of the valid confidences, in bits: 1 if there are two that are equally frequent."""
    n = np.unique(_valid(rows), return_counts=True)[1]
    return float(np.log2(n.sum()) - (n * np.log2(n)).sum() / n.sum())


def _valid(rows: Columns) -> np.ndarray:
    valid = rows["confidence"][~rows["imputed"]]
    if len(valid) == 0:
        raise UndefinedMetricError(f"no valid confidence among {len(rows)} rows")
    return valid


# The share of answers whose confidence is imputed, and the support of the others.
IMPUTED_SHARE = AnswerMetric(name="imputed_share", value=imputed_share)
ENDPOINT_SHARE = AnswerMetric(name="endpoint_share", head="Endpt.", value=endpoint_share)
UNIQUE_CONFIDENCES = AnswerMetric(
    name="unique_confidences", head="Unique", digits=0, is_count=True, value=unique_confidences
)
CHANNEL_METRICS = {metric.name: metric for metric in (IMPUTED_SHARE, ENDPOINT_SHARE, UNIQUE_CONFIDENCES)}


def _mean_of(losses: Callable[[Columns], np.ndarray]) -> BuildKernel:
    return lambda answers, image, n_images: mean_kernel(losses(answers).astype(np.float64), image, n_images)


def _ranks(answers: Columns, image: np.ndarray, n_images: int) -> Kernel:
    """Return the kernel of AUROC, AURC and E-AURC, which need to know the same of a resample."""
    return rank_kernel(answers["confidence"], answers["correct"], image, n_images)


def _errors(answers: Columns, image: np.ndarray, n_images: int) -> Kernel:
    """Return the kernel of what is known of wrong answers that are found, or kept, at each confidence."""
    return error_kernel(answers["confidence"], answers["correct"], image, n_images)


def _log_losses(answers: Columns, image: np.ndarray, n_images: int) -> Kernel:
    """Return the kernel of the log loss; it is undefined if any row's is infinite."""
    losses = calibration_error.log_losses(answers["confidence"], answers["correct"])
    return mean_kernel(losses, image, n_images) if np.isfinite(losses).all() else undefined_kernel


def _squared_calibration_error(answers: Columns, image: np.ndarray, n_images: int) -> Kernel:
    """Return the kernel of the squared calibration error: linear, with the variance of the jackknife over images."""
    # On a resample, pairs of one image with its copy would be no pairs of two images. Therefore each image changes the
    # value as much as leaving it out does, so that the sum of squared changes is the variance of the jackknife, and
    # times `t_stretch` for the images with the rarer kind of answer, on which the variance rests.
    confidence, correct = answers["confidence"], answers["correct"]
    images = Clusters.of(correct, image, n_images)
    try:
        value = calibration_chance.squared_calibration_error(confidence, correct, image)
    except UndefinedMetricError:
        return undefined_kernel
    left_out = calibration_chance.leave_one_image_out(confidence, correct, image)
    if np.isnan(left_out).any() or images.n_rarer < 2:
        return undefined_kernel
    change = np.zeros(n_images)
    stretch = sqrt((images.in_effect.n - 1) / images.in_effect.n) * t_stretch(images.df(images.n_rarer - 1.0))
    change[np.unique(image)] = (np.sort(left_out).mean() - left_out) * stretch
    return linear_kernel(value, change)


def _is_correct(rows: Columns) -> np.ndarray:
    return rows["correct"]


def _is_confidently_wrong(rows: Columns) -> np.ndarray:
    return (rows["confidence"] >= selective.HIGH_CONFIDENCE) & ~rows["correct"]


def _ranked(*, metric: Callable[..., float], **declared: Any) -> AnswerMetric:
    """Declare a metric of confidences, of which the order alone counts, and of which answers are correct."""
    return AnswerMetric(value=on_columns(metric, "confidence", "correct"), **declared)


def _calibrated(**declared: Any) -> AnswerMetric:
    """Declare one for which confidences have to be probabilities."""
    return _ranked(is_of_probabilities=True, **declared)


def _brier_part(part: str, **declared: Any) -> AnswerMetric:
    def metric(*columns: np.ndarray) -> float:
        return getattr(calibration_error.brier_parts(*columns), part)

    return _calibrated(name=f"brier_{part}", metric=metric, **declared)


ACCURACY = AnswerMetric(
    name="accuracy",
    head="Acc.",
    better="higher",
    is_of_actor=True,
    value=on_columns(discrimination.accuracy, "correct"),
    counts=_is_correct,
    kernel=_mean_of(_is_correct),
    spread=spread_of_losses,
)
AUROC = _ranked(
    name="auroc",
    head="AUROC",
    metric=discrimination.auroc,
    better="higher",
    kernel=_ranks,
    spread=spread_of_ranks,
    is_stored=True,
)
WITHIN_QUESTION_AUROC = AnswerMetric(
    name="within_question_auroc",
    better="higher",
    value=lambda rows: discrimination.within_question_auroc(
        rows["confidence"], rows["correct"], rows.codes("question_key")
    ),
)
ECE = _calibrated(name="ece15", head="ECE", metric=calibration_error.ece, better="lower")
SQUARED_CALIBRATION_ERROR = AnswerMetric(
    name="squared_calibration_error",
    head="CE²",
    better="lower",
    value=lambda rows: calibration_chance.squared_calibration_error(
        rows["confidence"], rows["correct"], rows.codes("cluster_id")
    ),
    kernel=_squared_calibration_error,
    is_of_probabilities=True,
    is_signed=True,
    is_stored=True,
)
BRIER = _calibrated(
    name="brier",
    head="Brier",
    metric=calibration_error.brier,
    better="lower",
    kernel=_mean_of(lambda rows: (rows["confidence"] - rows["correct"]) ** 2),
    spread=spread_of_losses,
    is_stored=True,
)
AURC = _ranked(
    name="aurc",
    head="AURC",
    metric=selective.aurc,
    better="lower",
    kernel=_ranks,
    spread=spread_of_ranks,
    is_skewed=True,
)
HCE = _calibrated(
    name="hce90",
    head="HCE@.9",
    metric=selective.hce,
    better="lower",
    counts=_is_confidently_wrong,
    kernel=_mean_of(_is_confidently_wrong),
    spread=spread_of_losses,
    is_skewed=True,
)
CALIBRATION_IN_THE_LARGE = _calibrated(
    name="calibration_in_the_large", head="In the large", metric=calibration_error.calibration_in_the_large
)
CALIBRATION_SLOPE = _calibrated(name="calibration_slope", head="Slope", metric=calibration_error.calibration_slope)
# A difference of metrics of ranks rests on the images with the rarer kind of answer.
IMAGES_WITH_RIGHT = AnswerMetric(
    name="images_with_right", value=lambda rows: float(rows.n_distinct("cluster_id", rows["correct"])), is_count=True
)
IMAGES_WITH_WRONG = AnswerMetric(
    name="images_with_wrong", value=lambda rows: float(rows.n_distinct("cluster_id", ~rows["correct"])), is_count=True
)
IMAGES_IN_EFFECT = AnswerMetric(
    name="images_in_effect", value=lambda rows: effective_number(np.bincount(rows.codes("cluster_id"))), is_count=True
)

# In the order of the metrics table; `FURTHER_METRICS` follow.
ANSWER_METRICS: dict[str, AnswerMetric] = {
    metric.name: metric
    for metric in (
        *(ACCURACY, AUROC, WITHIN_QUESTION_AUROC, ECE, SQUARED_CALIBRATION_ERROR, BRIER, AURC, HCE),
        *(CALIBRATION_IN_THE_LARGE, CALIBRATION_SLOPE, *CHANNEL_METRICS.values()),
        *(IMAGES_WITH_RIGHT, IMAGES_WITH_WRONG, IMAGES_IN_EFFECT),
    )
}

# Metrics that others report besides: `dualread evaluate` has them all, a study those that its `metrics.further` names.
# Functions of AURC and accuracy, and those of bins, which contain an error by chance, have no intervals of their own.
CONFIDENCE_ENTROPY = AnswerMetric(name="confidence_entropy", head="Entropy", value=confidence_entropy, largest=inf)
FURTHER_METRICS: dict[str, AnswerMetric] = {
    metric.name: metric
    for metric in (
        _calibrated(
            name="ece15_equal_mass", head="ECE, equal mass", metric=calibration_error.ece_equal_mass, better="lower"
        ),
        _calibrated(
            name="log_loss",
            head="Log loss",
            metric=calibration_error.log_loss,
            better="lower",
            kernel=_log_losses,
            spread=spread_of_log_losses,
            is_skewed=True,
            largest=inf,
        ),
        _brier_part("reliability", head="Brier rel.", better="lower"),
        _brier_part("resolution", head="Brier res.", better="higher", is_signed=True),
        _brier_part("uncertainty", head="Brier unc.", is_of_actor=True),
        _ranked(
            name="aupr_errors",
            head="AUPR-E",
            metric=discrimination.aupr_errors,
            better="higher",
            kernel=_errors,
            spread=spread_of_ranks,
        ),
        AnswerMetric(
            name="error_rate",
            head="Err.",
            better="lower",
            is_of_actor=True,
            value=lambda rows: discrimination.accuracy(~rows["correct"]),
            counts=lambda rows: ~rows["correct"],
        ),
        _ranked(
            name="fpr_at_95_tpr",
            head="FPR@95",
            metric=discrimination.fpr_at_95_tpr,
            better="lower",
            kernel=_errors,
            spread=spread_at_tpr,
            is_skewed=True,
        ),
        _ranked(name="auarc", head="AUARC", metric=selective.auarc, better="higher"),
        _ranked(
            name="e_aurc",
            head="E-AURC",
            metric=selective.e_aurc,
            better="lower",
            kernel=_ranks,
            spread=spread_of_ranks,
            is_skewed=True,
        ),
        _ranked(
            name="prediction_rejection_ratio",
            head="PRR",
            metric=selective.prediction_rejection_ratio,
            better="higher",
            is_signed=True,
        ),
        CONFIDENCE_ENTROPY,
    )
}
ALL_METRICS = ANSWER_METRICS | FURTHER_METRICS
# Two methods can be compared by these.
WITH_REPLICATES = tuple(name for name, metric in ALL_METRICS.items() if metric.kernel)
# A study stores their replicates, those of `FURTHER_METRICS` if it names them.
STORED = tuple(name for name in WITH_REPLICATES if name in FURTHER_METRICS or ANSWER_METRICS[name].is_stored)
# These have intervals of percentiles, which are wide, and cover more often than 95%, on fewer than `FEW_IMAGES` images
# with the rarer kind of answer.
WITH_PERCENTILES = tuple(name for name in WITH_REPLICATES if not ALL_METRICS[name].counts)
FEW_IMAGES = 10

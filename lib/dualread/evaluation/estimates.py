"""Every metric of one method on one (data set, split), for all, open and closed questions, with its intervals."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl

from dualread.errors import UndefinedMetricError
from dualread.evaluation.join import Evaluated
from dualread.metrics import accuracy, calibration_error, discrimination, grounding, selective
from dualread.stats.bootstrap import ImageDraws, Interval, image_cluster_interval
from dualread.stats.kernels import Kernel, auroc_kernel, mean_kernel

SUBSETS = ("all", "open", "closed")
NO_DONORS = "no same-question donors"

Metric = Callable[[pl.DataFrame], float]


def _on_columns(metric: Callable[..., float], *columns: str) -> Metric:
    return lambda frame: metric(*(frame[column].to_numpy() for column in columns))


def _imputed_share(frame: pl.DataFrame) -> float:
    if frame.is_empty():
        raise UndefinedMetricError("no rows")
    return int(frame["imputed"].sum()) / len(frame)


# Over the answers on the original images.
ANSWER_METRICS: dict[str, Metric] = {
    "accuracy": _on_columns(accuracy.accuracy, "correct"),
    "auroc": _on_columns(discrimination.auroc, "confidence", "correct"),
    "within_question_auroc": _on_columns(discrimination.within_question_auroc, "confidence", "correct", "question_key"),
    "ece15": _on_columns(calibration_error.ece, "confidence", "correct"),
    "brier": _on_columns(calibration_error.brier, "confidence", "correct"),
    "aurc": _on_columns(selective.aurc, "confidence", "correct"),
    "hce90": _on_columns(selective.hce, "confidence", "correct"),
    "calibration_in_the_large": _on_columns(calibration_error.calibration_in_the_large, "confidence", "correct"),
    "calibration_slope": _on_columns(calibration_error.calibration_slope, "confidence", "correct"),
    "imputed_share": _imputed_share,
}

_BOTH_CORRECT = ("correct_real", "correct_donor")
_NATURAL = ("confidence_real", "confidence_donor", *_BOTH_CORRECT)
_CANONICAL = ("canonical_answer_real", "canonical_answer_donor")


def _natural_mask(frame: pl.DataFrame) -> np.ndarray:
    return grounding.decisive(*(frame[column].to_numpy() for column in _BOTH_CORRECT))


def _strict_mask(frame: pl.DataFrame) -> np.ndarray:
    right, donor_right = (frame[column].to_numpy() for column in _BOTH_CORRECT)
    answer, donor_answer = (frame[column].to_list() for column in _CANONICAL)
    return grounding.strict_decisive(right, donor_right, answer, donor_answer)


def _all_pairs(frame: pl.DataFrame) -> np.ndarray:
    return np.ones(len(frame), dtype=np.bool_)


def _power(mask: Callable[[pl.DataFrame], np.ndarray], field: str) -> Metric:
    def metric(frame: pl.DataFrame) -> float:
        images = (frame["source_image_id"].to_list(), frame["donor_image_id"].to_list())
        return float(getattr(grounding.power(mask(frame), *images), field))

    return metric


# Over the donor pairs: the metric, and the pairs that it rests on.
PAIR_METRICS: dict[str, tuple[Metric, Callable[[pl.DataFrame], np.ndarray]]] = {
    "natural_ccg_auc": (_on_columns(grounding.natural_ccg_auc, *_NATURAL), _natural_mask),
    "strict_ccg_auc": (_on_columns(grounding.strict_ccg_auc, *_NATURAL, *_CANONICAL), _strict_mask),
    "vrs": (_on_columns(grounding.vrs, *_BOTH_CORRECT), _all_pairs),
    "vbr": (_on_columns(grounding.vbr, *_BOTH_CORRECT), _all_pairs),
    "decisive_pairs": (_power(_natural_mask, "pairs"), _natural_mask),
    "source_images": (_power(_natural_mask, "source_images"), _natural_mask),
    "donor_images": (_power(_natural_mask, "donor_images"), _natural_mask),
    "natural_underpowered": (_power(_natural_mask, "underpowered"), _natural_mask),
    "strict_decisive_pairs": (_power(_strict_mask, "pairs"), _strict_mask),
    "strict_source_images": (_power(_strict_mask, "source_images"), _strict_mask),
    "strict_donor_images": (_power(_strict_mask, "donor_images"), _strict_mask),
    "strict_underpowered": (_power(_strict_mask, "underpowered"), _strict_mask),
}

# Metrics with an interval; each also has a row <metric>_undefined_replicates.
INTERVALS = ("auroc", "brier", "natural_ccg_auc", "strict_ccg_auc")


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """One value of one metric; the fields are columns of the metrics table."""

    subset: str
    metric: str
    estimate: float | None
    low: float | None
    high: float | None
    n: int
    n_clusters: int
    reason: str | None


def estimate(evaluated: Evaluated, draws: ImageDraws) -> list[dict]:
    """Return one mapping a (subset, metric); an undefined metric has a null estimate and its reason.

    Args:
        evaluated: The joined tables of one (data set, split).
        draws: Resamples of the manifest's images, shared by all subsets and metrics.
    """
    frames = {subset: _subset(evaluated, subset) for subset in SUBSETS}
    kernels = {
        f"{subset}/{name}": kernel for subset in SUBSETS for name, kernel in _kernels(frames[subset], draws).items()
    }
    intervals = image_cluster_interval(kernels, draws)
    rows = []
    for subset in SUBSETS:
        for row in [*_answer_rows(subset, frames[subset].answers), *_pair_rows(subset, frames[subset].pairs)]:
            found = intervals.get(f"{subset}/{row.metric}")
            rows += [asdict(row)] if row.metric not in INTERVALS else _with_interval(row, found, draws.replicates)
    return rows


def _subset(evaluated: Evaluated, subset: str) -> Evaluated:
    if subset == "all":
        return evaluated
    chosen = pl.col("answer_type") == subset
    pairs = None if evaluated.pairs is None else evaluated.pairs.filter(chosen)
    return Evaluated(answers=evaluated.answers.filter(chosen), pairs=pairs)


def _answer_rows(subset: str, answers: pl.DataFrame) -> Iterator[Estimate]:
    for name, metric in ANSWER_METRICS.items():
        yield _row(subset, name, metric, answers, n=len(answers), n_clusters=answers["image_id"].n_unique())


def _pair_rows(subset: str, pairs: pl.DataFrame | None) -> Iterator[Estimate]:
    for name, (metric, mask) in PAIR_METRICS.items():
        if pairs is None:
            yield _undefined(subset, name, NO_DONORS)
        else:
            chosen = pairs.filter(pl.Series(mask(pairs), dtype=pl.Boolean))
            yield _row(subset, name, metric, pairs, n=len(chosen), n_clusters=chosen["source_image_id"].n_unique())


def _row(subset: str, name: str, metric: Metric, frame: pl.DataFrame, *, n: int, n_clusters: int) -> Estimate:
    value, reason = None, None
    try:
        value = float(metric(frame))
    except UndefinedMetricError as error:
        reason = str(error)
    return Estimate(
        subset=subset, metric=name, estimate=value, low=None, high=None, n=n, n_clusters=n_clusters, reason=reason
    )


def _undefined(subset: str, name: str, reason: str) -> Estimate:
    return Estimate(subset=subset, metric=name, estimate=None, low=None, high=None, n=0, n_clusters=0, reason=reason)


def _kernels(evaluated: Evaluated, draws: ImageDraws) -> dict[str, Kernel]:
    answers, pairs, n_images = evaluated.answers, evaluated.pairs, len(draws.image_ids)
    confidence, correct = answers["confidence"].to_numpy(), answers["correct"].to_numpy()
    cluster = draws.cluster_of(answers["image_id"].to_list())
    kernels = {
        "auroc": auroc_kernel(confidence, correct, cluster, n_images),
        "brier": mean_kernel((confidence - correct) ** 2, cluster, n_images),
    }
    if pairs is not None:
        wins = grounding.preference(pairs["confidence_real"].to_numpy(), pairs["confidence_donor"].to_numpy())
        source = draws.cluster_of(pairs["source_image_id"].to_list())
        for name, mask in (("natural_ccg_auc", _natural_mask(pairs)), ("strict_ccg_auc", _strict_mask(pairs))):
            kernels[name] = mean_kernel(wins[mask], source[mask], n_images)
    return kernels


def _with_interval(row: Estimate, found: Interval | None, replicates: int) -> list[dict]:
    name = f"{row.metric}_undefined_replicates"
    if found is None or replicates == 0:
        reason = row.reason if found is None else "no replicates were asked for"
        return [asdict(row), asdict(_undefined(row.subset, name, reason or NO_DONORS))]
    count = {"metric": name, "estimate": float(found.n_undefined), "reason": None}
    return [{**asdict(row), "low": found.low, "high": found.high}, {**asdict(row), **count}]

"""Every metric of one method on one (data set, split), for all, open and closed questions, with its intervals."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dualread.errors import UndefinedMetricError
from dualread.evaluation import controls
from dualread.evaluation.channel import CHANNEL_METRICS, COUNTS
from dualread.evaluation.columns import (
    CellColumns,
    Columns,
    Mask,
    Metric,
    all_rows,
    decisive,
    on_columns,
    power,
    strict_decisive,
)
from dualread.evaluation.metrics import (
    calibration_chance,
    calibration_error,
    correctness,
    discrimination,
    grounding,
    selective,
)
from dualread.evaluation.pair_means import COMPARABLE, PAIR_MEANS, PairValues, detectable, limits, pair_values, ties
from dualread.evaluation.replicates import ANSWERS, INTERVALS, replicates
from dualread.evaluation.statistics.bootstrap import ImageDraws, including, interval
from dualread.evaluation.statistics.proportion import share_interval

SUBSETS = ("all", "open", "closed")


# On the answers on the original images.
ANSWER_METRICS: dict[str, Metric] = {
    "accuracy": on_columns(correctness.accuracy, "correct"),
    "auroc": on_columns(discrimination.auroc, "confidence", "correct"),
    "within_question_auroc": lambda rows: discrimination.within_question_auroc(
        rows["confidence"], rows["correct"], rows.codes("question_key")
    ),
    "ece15": on_columns(calibration_error.ece, "confidence", "correct"),
    "squared_calibration_error": lambda rows: calibration_chance.squared_calibration_error(
        rows["confidence"], rows["correct"], rows.codes("image_id")
    ),
    "brier": on_columns(calibration_error.brier, "confidence", "correct"),
    "aurc": on_columns(selective.aurc, "confidence", "correct"),
    "hce90": on_columns(selective.hce, "confidence", "correct"),
    "calibration_in_the_large": on_columns(calibration_error.calibration_in_the_large, "confidence", "correct"),
    "calibration_slope": on_columns(calibration_error.calibration_slope, "confidence", "correct"),
    **CHANNEL_METRICS,
    # A difference of metrics of ranks rests on the images with the rarer kind of answer.
    "images_with_right": lambda rows: float(rows.n_distinct("image_id", rows["correct"])),
    "images_with_wrong": lambda rows: float(rows.n_distinct("image_id", ~rows["correct"])),
}
# The ECE that calibrated confidences reach by chance. It needs random signs, and its mean over data sets says nothing.
NOISE_FLOOR = "ece15_noise_floor"
# The rows that a rate counts.
POSITIVE: dict[str, Callable[[Columns], np.ndarray]] = {
    "accuracy": lambda rows: rows["correct"],
    "hce90": lambda rows: (rows["confidence"] >= selective.HIGH_CONFIDENCE) & ~rows["correct"],
}
ANSWER_COUNTS = (*COUNTS, "images_with_right", "images_with_wrong")

_BOTH_CORRECT = ("correct_real", "correct_donor")
_NATURAL = ("confidence_real", "confidence_donor", *_BOTH_CORRECT)
_CANONICAL = ("canonical_answer_real", "canonical_answer_donor")
_natural_mask = decisive("donor")

# On the donor pairs: the metric, and the pairs that it uses. Rates have a mean over data sets, counts have none.
PAIR_RATES: dict[str, tuple[Metric, Mask]] = {
    "natural_ccg_auc": (on_columns(grounding.natural_ccg_auc, *_NATURAL), _natural_mask),
    "strict_ccg_auc": (on_columns(grounding.strict_ccg_auc, *_NATURAL, *_CANONICAL), strict_decisive),
    "accuracy_real": (on_columns(correctness.accuracy, "correct_real"), all_rows),
    "accuracy_donor": (on_columns(correctness.accuracy, "correct_donor"), all_rows),
    "vrs": (on_columns(grounding.vrs, *_BOTH_CORRECT), all_rows),
    "vbr": (on_columns(grounding.vbr, *_BOTH_CORRECT), all_rows),
    "natural_ties": (ties("natural_ccg_auc"), _natural_mask),
    "strict_ties": (ties("strict_ccg_auc"), strict_decisive),
    "natural_few_sources": (power(_natural_mask, "few_sources"), _natural_mask),
    "natural_few_donors": (power(_natural_mask, "few_donors"), _natural_mask),
    "strict_few_sources": (power(strict_decisive, "few_sources"), strict_decisive),
    "strict_few_donors": (power(strict_decisive, "few_donors"), strict_decisive),
}
PAIR_COUNTS: dict[str, tuple[Metric, Mask]] = {
    "decisive_pairs": (power(_natural_mask, "pairs"), _natural_mask),
    "source_images": (power(_natural_mask, "source_images"), _natural_mask),
    "donor_images": (power(_natural_mask, "donor_images"), _natural_mask),
    "strict_decisive_pairs": (power(strict_decisive, "pairs"), strict_decisive),
    "strict_source_images": (power(strict_decisive, "source_images"), strict_decisive),
    "strict_donor_images": (power(strict_decisive, "donor_images"), strict_decisive),
    "natural_detectable": (detectable("natural_ccg_auc"), _natural_mask),
    "strict_detectable": (detectable("strict_ccg_auc"), strict_decisive),
}
PAIR_METRICS = PAIR_RATES | PAIR_COUNTS


class Estimate(NamedTuple):
    """One value of one metric; the fields are columns of the metrics table."""

    subset: str
    metric: str
    estimate: float | None
    low: float | None
    high: float | None
    n: int
    n_clusters: int
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What it takes to compare a method with others on the same questions.

    Attributes:
        replicates: By metric of answers, float64 [B].
        pairs: By metric of `pair_means.COMPARABLE`, its value pair by pair.
    """

    replicates: Mapping[str, np.ndarray]
    pairs: Mapping[str, PairValues]


def estimate(cell: CellColumns, draws: ImageDraws) -> tuple[list[dict], Kept]:
    """Return one mapping per (subset, metric), and what comparisons on all questions need.

    An undefined metric has a null estimate and a reason. A metric with a percentile interval has a further row
    <metric>_undefined_replicates, which counts the replicates without a value. Without replicates, no metric of answers
    has an interval.

    Args:
        cell: The joined tables of one (data set, split).
        draws: Resamples of the manifest's images, shared by all subsets and metrics.
    """
    rows, kept = [], {}
    for subset in SUBSETS:
        chosen = cell if subset == "all" else cell.of_type(subset)
        resampled = replicates(chosen, draws)
        for row in _rows(subset, chosen, draws):
            if row.metric in INTERVALS:
                rows += _with_interval(row, resampled.get(row.metric))
            else:
                rows.append(row._asdict())
        if subset == "all":
            kept = {name: resampled[name] for name in ANSWERS}
    pairs = {} if isinstance(cell.pairs, str) else {name: pair_values(name, cell.pairs) for name in COMPARABLE}
    return rows, Kept(replicates=kept, pairs=pairs)


def _rows(subset: str, cell: CellColumns, draws: ImageDraws) -> Iterator[Estimate]:
    sizes = {"n": len(cell.answers), "n_clusters": cell.answers.n_distinct("image_id", all_rows(cell.answers))}
    for name, metric in ANSWER_METRICS.items():
        found = measure(subset, name, metric, cell.answers, **sizes)
        yield with_share_interval(found, cell.answers, draws) if name in POSITIVE else found
        if name == "ece15":
            yield measure(subset, NOISE_FLOOR, partial(noise_floor, draws=draws), cell.answers, **sizes)
    yield from _masked_rows(subset, cell.pairs, PAIR_METRICS)
    yield from _masked_rows(subset, cell.fixed, controls.FIXED_METRICS)
    yield from _masked_rows(subset, cell.shuffled, controls.SHUFFLED_METRICS)


def _masked_rows(subset: str, rows: Columns | str, metrics: Mapping[str, tuple[Metric, Mask]]) -> Iterator[Estimate]:
    for name, (metric, mask) in metrics.items():
        if isinstance(rows, str):
            yield _undefined(subset, name, rows)
        else:
            chosen = rows.mask(mask)
            n, n_clusters = int(np.count_nonzero(chosen)), rows.n_distinct("source_image_id", chosen)
            found = measure(subset, name, metric, rows, n=n, n_clusters=n_clusters)
            ends = limits(name, rows, found.estimate) if name in PAIR_MEANS and found.estimate is not None else None
            yield found if ends is None else found._replace(low=ends[0], high=ends[1])


def noise_floor(answers: Columns, draws: ImageDraws) -> float:
    """Return the ECE that calibrated confidences reach by chance; all methods meet the same signs of the images."""
    images = answers.cluster("image_id", draws), len(draws.image_ids)
    return calibration_chance.ece_noise_floor(answers["confidence"], answers["correct"], *images, draws.names)


def with_share_interval(found: Estimate, answers: Columns, draws: ImageDraws) -> Estimate:
    """Return a rate of `POSITIVE` with its interval; without one if no resamples were asked for."""
    if found.estimate is None or draws.replicates == 0:
        return found
    ends = share_interval(POSITIVE[found.metric](answers), answers.codes("image_id"))
    return found if ends is None else found._replace(low=ends[0], high=ends[1])


def measure(subset: str, name: str, metric: Metric, rows: Columns, *, n: int, n_clusters: int) -> Estimate:
    """Return the metric `name` of `rows` without an interval; an undefined metric has a reason."""
    value, reason = None, None
    try:
        value = float(metric(rows))
    except UndefinedMetricError as error:
        reason = str(error)
    return Estimate(
        subset=subset, metric=name, estimate=value, low=None, high=None, n=n, n_clusters=n_clusters, reason=reason
    )


def _undefined(subset: str, name: str, reason: str) -> Estimate:
    return Estimate(subset=subset, metric=name, estimate=None, low=None, high=None, n=0, n_clusters=0, reason=reason)


def _with_interval(row: Estimate, values: np.ndarray | None) -> list[dict[str, Any]]:
    name = f"{row.metric}_undefined_replicates"
    if values is None or len(values) == 0:
        reason = row.reason if values is None else None
        return [row._asdict(), _undefined(row.subset, name, reason or "no replicates were asked for")._asdict()]
    found = interval(values)
    low, high = including(found.low, found.high, row.estimate)
    count = {"metric": name, "estimate": float(found.n_undefined), "reason": None}
    return [{**row._asdict(), "low": low, "high": high}, {**row._asdict(), **count}]

"""The metrics of a method that gives no confidences, because no reader could be fitted: null, with the reason.

Of a method that was not calibrated there are scores: `of_scores` leaves the metrics for which only their order counts.

They are the rows that another method has, with the same numbers of questions and images. So tables show dashes in its
line, comparisons with it have the reason, and the rest of a study does not notice.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from dualread.evaluation import controls
from dualread.evaluation.answer_metrics import ALL_METRICS, ANSWER_METRICS, NOISE_FLOOR, WITH_PERCENTILES
from dualread.evaluation.conditions import FAMILY_METRICS, FAMILY_PREFIX, undefined_rows
from dualread.evaluation.estimates import SUBSETS
from dualread.evaluation.metric import metric_row
from dualread.evaluation.pair_metrics import PAIR_METRICS
from dualread.evaluation.thresholds import metric_names

WITHOUT_PROBABILITIES = "this metric needs probabilities; of scores only the order counts"
# With these begin the names of metrics that need probabilities, and of what is said about them.
OF_PROBABILITIES = (
    *(name for name, metric in ALL_METRICS.items() if metric.is_of_probabilities),
    *("mean_confidence", "confidence_drop", "threshold_at_risk_", "certified_threshold_at_risk_"),
)
_PLACE = ("subset", "group", "metric", "n", "n_clusters")
_COUNT = "{}_undefined_replicates"
_OF_ANSWERS = (*ANSWER_METRICS, NOISE_FLOOR)
_OF_OTHERS = (
    *(*PAIR_METRICS, *controls.FIXED_METRICS, *controls.SHUFFLED_METRICS),
    _COUNT.format(controls.SHUFFLED_AUROC.name),
)


def of_scores(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the row of a metric of scores: without numbers, and with the reason, if the metric needs probabilities."""
    if not row["metric"].startswith(OF_PROBABILITIES):
        return row
    return without_numbers(row, WITHOUT_PROBABILITIES)


def without_numbers(row: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """Return the row of a metric with its place and sizes alone, and the reason why it has no other number."""
    return {key: value if key in _PLACE else None for key, value in row.items()} | {"reason": reason}


def without_confidences(
    questions: pl.DataFrame,
    target_risk_percent: Iterable[int],
    reason: str,
    conditions: Iterable[str],
    further: Iterable[str],
    *,
    of_claims: bool,
) -> Iterator[dict]:
    """Yield one `metric_row` per metric of one (data set, split), of which `questions` is the manifest.

    `reason` says why there are no confidences. `conditions` are those of `side_by_side.conditions_of`, `further` names
    of `answer_metrics.FURTHER_METRICS`. With `of_claims`, reports are forced on donors' images, so that there are
    controls of claims, too.
    """
    computed = {*ANSWER_METRICS, *further}
    counted = (_COUNT.format(name) for name in WITH_PERCENTILES if name in computed)
    of_answers = (*_OF_ANSWERS, *further, *counted)
    at_risks = tuple(metric_names(target_risk_percent))
    for subset in SUBSETS:
        asked = questions if subset == "all" else questions.filter(answer_type=subset)
        yield from _rows(subset, (*of_answers, *(at_risks if subset == "all" else ())), asked, reason)
        others = (*_OF_OTHERS, *(controls.CLAIM_METRICS if of_claims else ()))
        yield from (metric_row(subset, name, reason=reason) for name in others)
    known = questions.drop_nulls("content_family").sort("content_family")
    for (family,), asked in known.group_by("content_family", maintain_order=True):
        yield from _rows(f"{FAMILY_PREFIX}{family}", (*FAMILY_METRICS, NOISE_FLOOR), asked, reason)
    yield from undefined_rows(conditions, reason)


def _rows(subset: str, names: Iterable[str], asked: pl.DataFrame, reason: str) -> Iterator[dict]:
    sizes = {"n": len(asked), "n_clusters": asked["cluster_id"].n_unique()}
    yield from (metric_row(subset, name, **sizes, reason=reason) for name in names)

"""Thresholds as in deployment: chosen on validation to reach a target risk, and judged on other data.

For a target risk of 10%, a method has three metrics on all questions of a (data set, split):
threshold_at_risk_10, the smallest confidence at or above which at most 10% of the validation answers are wrong;
coverage_at_risk_10, the share of answers with at least this confidence, which are kept; and
kept_risk_at_risk_10, the error rate of the kept answers.

Three more have the prefix certified_. Their threshold is the smallest one for which the risk of new answers is at most
10%, with a probability of error of at most `risk_control.DELTA`. This holds for each method and target by itself, and
as long as no new image has more questions than the validation image with the most.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from dualread.errors import UndefinedMetricError
from dualread.evaluation.columns import Columns, OfColumns, all_rows
from dualread.evaluation.estimates import measure
from dualread.evaluation.metrics import risk_control, selective
from dualread.evaluation.statistics.proportion import share_interval

# The threshold for each rule and target risk in percent, or the reason why there is none.
Thresholds = Mapping[tuple[str, int], float | str]

# How a threshold is chosen, by the prefix of its metrics: a function of validation answers and the target risk.
RULES: dict[str, Callable[[Columns, float], float]] = {
    "": lambda answers, risk: selective.threshold(answers["confidence"], answers["correct"], target_risk=risk),
    "certified_": lambda answers, risk: risk_control.certified_threshold(
        answers["confidence"], answers["correct"], answers.image_numbers("image_id")[0], target_risk=risk
    ),
}


def metric_name(kind: str, percent: int) -> str:
    """Return the metric's name, such as coverage_at_risk_10 for the coverage at 10%."""
    return f"{kind}_at_risk_{percent:02d}"


def is_rate(metric: str) -> bool:
    """Return whether the metric is a share of answers at a threshold, which can be averaged over data sets."""
    return metric.removeprefix("certified_").startswith(("coverage_at_risk_", "kept_risk_at_risk_"))


def choose(answers: Columns, target_risk_percent: Iterable[int]) -> Thresholds:
    """Return the threshold of each rule and target risk on validation answers, or the reason why there is none.

    Args:
        answers: image_id, confidence and correct; one row per answer.
        target_risk_percent: Largest error rates of the kept answers; whole numbers from 1 to 99.
    """
    found: dict[tuple[str, int], float | str] = {}
    for percent in target_risk_percent:
        for rule, chosen in RULES.items():
            try:
                found[rule, percent] = chosen(answers, percent / 100)
            except UndefinedMetricError as error:
                found[rule, percent] = f"validation: {error}"
    return found


def threshold_rows(answers: Columns, thresholds: Thresholds) -> list[dict]:
    """Return one mapping per metric as `estimates.estimate` does.

    Coverage and kept risk have the interval of `proportion.share_interval`. It holds for new images and this threshold:
    that other validation answers would have chosen another one is not in it.

    Args:
        answers: The joined answers of one (data set, split): image_id, confidence and correct.
        thresholds: What `choose` found on validation.
    """
    n, n_clusters = len(answers), answers.n_distinct("image_id", all_rows(answers))
    rows = []
    for (rule, percent), found in thresholds.items():
        for kind, value in _VALUES.items():
            name = metric_name(rule + kind, percent)
            row = measure("all", name, _defined(found, value), answers, n=n, n_clusters=n_clusters)
            if kind in _COUNTED and isinstance(found, float) and row.estimate is not None:
                low, high = _limits(answers, _COUNTED[kind](answers, found))
                row = row._replace(low=low, high=high)
            rows.append(row._asdict())
    return rows


def names_of(target_risk_percent: Iterable[int]) -> Iterator[str]:
    """Yield the name of every metric of these target risks."""
    yield from (metric_name(rule + kind, n) for n in target_risk_percent for rule in RULES for kind in _VALUES)


_VALUES: dict[str, Callable[[Columns, float], float]] = {
    "threshold": lambda answers, threshold: threshold,
    "coverage": lambda answers, threshold: selective.coverage(answers["confidence"], threshold),
    "kept_risk": lambda answers, threshold: selective.kept_risk(
        answers["confidence"], answers["correct"], threshold=threshold
    ),
}
# For the rates: the rows of which the share is taken, and those that it counts.
_COUNTED: dict[str, Callable[[Columns, float], tuple[np.ndarray, np.ndarray]]] = {
    "coverage": lambda answers, threshold: (all_rows(answers), answers["confidence"] >= threshold),
    "kept_risk": lambda answers, threshold: (answers["confidence"] >= threshold, ~answers["correct"]),
}


def _limits(answers: Columns, counted: tuple[np.ndarray, np.ndarray]) -> tuple[float, float]:
    among, positive = counted
    ends = share_interval(positive[among], answers.codes("image_id")[among])
    assert ends is not None  # a rate without rows has no estimate
    return ends


def _defined(threshold: float | str, value: Callable[[Columns, float], float]) -> OfColumns:
    def metric(answers: Columns) -> float:
        if isinstance(threshold, str):
            raise UndefinedMetricError(threshold)
        return value(answers, threshold)

    return metric

"""Thresholds as in deployment: chosen on validation to reach a target risk, and judged on other data.

For a target risk of 10%, a method has three metrics on all questions of a (data set, split):
threshold_at_risk_10, the smallest confidence at or above which at most 10% of the validation answers are wrong;
coverage_at_risk_10, the share of answers with at least this confidence, which are kept; and
kept_risk_at_risk_10, the error rate of the kept answers.

Three more have the prefix certified_. Their threshold is the smallest one for which the risk of new answers is at most
10%, with a probability of error of at most `risk_control.DELTA`. This holds for each method and target by itself, and
as long as no new image has more questions than the validation image with the most.

A threshold travels with the reader that it is for (`Threshold`), and decides whether to keep an answer (`decide`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from dualread.errors import ConfigError, UndefinedMetricError
from dualread.evaluation.columns import Columns, all_rows, numbered
from dualread.evaluation.metric import metric_row, why_none
from dualread.evaluation.metrics import risk_control, selective
from dualread.evaluation.statistics.clusters import in_unit
from dualread.evaluation.statistics.proportion import share_interval

EMPIRICAL, CERTIFIED = "empirical", "certified"
# What the names of a rule's metrics begin with.
RULES = {"": EMPIRICAL, "certified_": CERTIFIED}
_KINDS = ("threshold", "coverage", "kept_risk")
_METRIC = re.compile(r"(?P<prefix>certified_|)(?P<kind>threshold|coverage|kept_risk)_at_risk_(?P<percent>\d+)")

# The threshold for each rule's prefix and target risk in percent, or the reason why there is none.
Thresholds = Mapping[tuple[str, int], float | str]


class Confidences(NamedTuple):
    """Answers: confidence, float64 [n]; correct, bool [n]; and image, int64 [n], the number of each one's image."""

    confidence: np.ndarray
    correct: np.ndarray
    image: np.ndarray

    @classmethod
    def of(cls, answers: pl.DataFrame) -> "Confidences":
        """Return the answers of a table with confidence, correct and cluster_id."""
        return cls(answers["confidence"].to_numpy(), answers["correct"].to_numpy(), numbered(answers["cluster_id"]))


class Judged(NamedTuple):
    """What a threshold leads to: a value with the ends of its interval, or the reason why there is none of either."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


def metric_name(kind: str, percent: int) -> str:
    """Return the metric's name, such as coverage_at_risk_10 for the coverage at 10%."""
    return f"{kind}_at_risk_{percent:02d}"


def is_rate(metric: str) -> bool:
    """Return whether the metric is a share of answers at a threshold, which can be averaged over data sets."""
    parsed = _METRIC.fullmatch(metric)
    return parsed is not None and parsed["kind"] != "threshold"


def threshold(
    rule: str,
    answers: Confidences,
    *,
    target_risk: float,
    delta: float = risk_control.DELTA,
    max_per_image: int | None = None,
) -> float:
    """Return the smallest confidence at or above which answers can be kept.

    Args:
        rule: "empirical", if at most the target share of these `answers` may be wrong; "certified", if this is to hold
            for new ones.
        answers: Those that choose.
        target_risk: Largest error rate of the kept answers, in (0, 1).
        delta: Of a certified one: how often it may be wrong, see `risk_control.certified_threshold`.
        max_per_image: As there.

    Raises:
        UndefinedMetricError: There is none.
    """
    if rule == EMPIRICAL:
        return selective.threshold(answers.confidence, answers.correct, target_risk=target_risk)
    return risk_control.certified_threshold(*answers, target_risk=target_risk, delta=delta, max_per_image=max_per_image)


def judged(answers: Confidences, cut: float | str) -> dict[str, Judged]:
    """Return the threshold, and coverage and kept_risk of other answers with their intervals.

    An interval (`proportion.share_interval`) holds for new images and this threshold: that other validation answers
    would have chosen another one is not in it.

    Args:
        answers: The answers to judge.
        cut: The threshold, or the reason why there is none.
    """
    if isinstance(cut, str):
        return dict.fromkeys(_KINDS, Judged(None, reason=cut))
    kept, images, values = answers.confidence >= cut, answers.image, {"threshold": Judged(cut)}
    rates = (
        ("coverage", lambda: selective.coverage(answers.confidence, cut), kept, images),
        ("kept_risk", lambda: selective.kept_risk(*answers[:2], threshold=cut), ~answers.correct[kept], images[kept]),
    )
    for kind, rate, positive, image in rates:
        try:
            value = rate()
        except UndefinedMetricError as error:
            values[kind] = Judged(None, reason=str(error))
        else:
            ends = share_interval(positive, image)
            values[kind] = Judged(value, reason=why_none(image)) if ends is None else Judged(value, *ends)
    return values


def choose(answers: Columns, target_risk_percent: Iterable[int], unit: str = "image") -> Thresholds:
    """Return the threshold of each rule and target risk on validation answers, or the reason why there is none.

    Args:
        answers: cluster_id, confidence and correct; one row per answer.
        target_risk_percent: Largest error rates of the kept answers; whole numbers from 1 to 99.
        unit: What a cluster of these answers is.
    """
    rows = Confidences(answers["confidence"], answers["correct"], answers.cluster_numbers("cluster_id")[0])
    chosen: dict[tuple[str, int], float | str] = {}
    for percent in target_risk_percent:
        for prefix, rule in RULES.items():
            try:
                chosen[prefix, percent] = threshold(rule, rows, target_risk=percent / 100)
            except UndefinedMetricError as error:
                chosen[prefix, percent] = f"validation: {in_unit(str(error), unit)}"
    return chosen


def threshold_rows(answers: Columns, thresholds: Thresholds, unit: str = "image") -> Iterator[dict]:
    """Yield one `metric_row` per metric.

    Args:
        answers: The joined answers of one (data set, split): cluster_id, confidence and correct.
        thresholds: What `choose` found on validation, whose reasons are in the unit of the validation answers.
        unit: What a cluster of `answers` is.
    """
    rows = Confidences(answers["confidence"], answers["correct"], answers.codes("cluster_id"))
    sizes = {"n": len(answers), "n_clusters": answers.n_distinct("cluster_id", all_rows(answers))}
    for (prefix, percent), cut in thresholds.items():
        for kind, rate in judged(rows, cut).items():
            reason = rate.reason if isinstance(cut, str) else in_unit(rate.reason, unit)
            ends = {"low": rate.low, "high": rate.high}
            yield metric_row("all", metric_name(prefix + kind, percent), rate.value, **ends, **sizes, reason=reason)


def metric_names(target_risk_percent: Iterable[int]) -> Iterator[str]:
    """Yield the name of every metric of these target risks."""
    yield from (metric_name(rule + kind, n) for n in target_risk_percent for rule in RULES for kind in _KINDS)


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """The smallest confidence at or above which answers are kept, chosen for a target risk on validation answers.

    Attributes:
        method: The method whose confidences it is for.
        rule: How it was chosen: "empirical" if at most the target share of the validation answers that are kept is
            wrong; "certified" if this holds for new answers with high probability.
        target_risk_percent: The largest share of wrong answers, in percent, among those that are kept.
        value: The threshold; None if no threshold reaches the target on the validation answers.
        reason: Why there is no value; None if there is one.
    """

    method: str
    rule: str
    target_risk_percent: int
    value: float | None
    reason: str | None

    @classmethod
    def of_metric(cls, row: Mapping) -> "Threshold | None":
        """Return the threshold in a row of a metrics table; None if it holds another metric."""
        if (name := _METRIC.fullmatch(row["metric"])) is None or name["kind"] != "threshold":
            return None
        return cls(
            method=row["method"],
            rule=RULES[name["prefix"]],
            target_risk_percent=int(name["percent"]),
            value=row["estimate"],
            reason=row["reason"],
        )


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Whether to keep an answer.

    Attributes:
        keep: Whether the confidence reaches the threshold; False without a confidence, None if there is no threshold.
        threshold: The threshold; None if there is none.
        target_risk_percent: The target risk that the threshold is for; None without thresholds.
        reason: The rule, or why nothing was decided.
    """

    keep: bool | None
    threshold: float | None
    target_risk_percent: int | None
    reason: str


def deciding(thresholds: Sequence[Threshold], target_risk_percent: int | None, *, certified: bool) -> Threshold | None:
    """Return the threshold of a rule for a target risk, or for the smallest one; None if none was asked for or travels.

    Raises:
        ConfigError: The threshold that was asked for is not among them; the message lists those that are.
    """
    rule = CERTIFIED if certified else EMPIRICAL
    of_rule = sorted((entry for entry in thresholds if entry.rule == rule), key=lambda entry: entry.target_risk_percent)
    wanted = [entry for entry in of_rule if target_risk_percent in (None, entry.target_risk_percent)]
    if wanted or (target_risk_percent is None and not certified):
        return wanted[0] if wanted else None
    known = ", ".join(f"{entry.rule} at {entry.target_risk_percent}%" for entry in thresholds) or "none"
    asked = rule if target_risk_percent is None else f"{rule} at {target_risk_percent}%"
    raise ConfigError(
        f"threshold {asked}: does not travel with the reader. Known: {known}. A study has thresholds for its"
        " `metrics.target_risk_percent`, and `dualread export` writes them beside its readers."
    )


def decide(confidence: float | None, threshold: Threshold | None, why: str | None = None) -> Decision:
    """Return whether an answer with this confidence is kept; never without one, and `why` says why."""
    if confidence is None:
        value, target = (None, None) if threshold is None else (threshold.value, threshold.target_risk_percent)
        reason = f"no confidence: {why}"
        return Decision(keep=False, threshold=value, target_risk_percent=target, reason=reason)
    if threshold is None:
        reason = "no threshold travels with this reader; dualread export writes those of a study beside its readers"
        return Decision(keep=None, threshold=None, target_risk_percent=None, reason=reason)
    target, value = threshold.target_risk_percent, threshold.value
    if value is None:
        reason = f"no {threshold.rule} threshold for a risk of {target}%: {threshold.reason}"
        return Decision(keep=None, threshold=None, target_risk_percent=target, reason=reason)
    keep = confidence >= value
    reason = (
        f"{confidence:.4f} is {'at least' if keep else 'below'} {value:.4f}, the {threshold.rule} threshold for a risk"
    )
    return Decision(keep=keep, threshold=value, target_risk_percent=target, reason=f"{reason} of {target}%")

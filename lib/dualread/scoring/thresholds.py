"""Thresholds that travel with a reader, and the decision that one of them makes."""

from collections.abc import Sequence
from dataclasses import dataclass

from dualread.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """The smallest confidence at or above which answers are kept, chosen for a target risk on validation answers.

    Attributes:
        method: The method whose confidences it is for.
        metric: Its name in the study's metrics, such as "threshold_at_risk_10".
        target_risk_percent: The largest share of wrong answers, in percent, among those that are kept.
        value: The threshold; None if no threshold reaches the target on the validation answers.
        reason: Why there is no value; None if there is one.
        chosen_on: The answers on which it was chosen, such as "slake/validation".
    """

    method: str
    metric: str
    target_risk_percent: int
    value: float | None
    reason: str | None
    chosen_on: str


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Whether to keep an answer.

    Attributes:
        keep: Whether the confidence reaches the threshold; None if there is no threshold.
        threshold: The threshold; None if there is none.
        target_risk_percent: The target risk that the threshold is for; None without thresholds.
        reason: The rule, or why nothing was decided.
    """

    keep: bool | None
    threshold: float | None
    target_risk_percent: int | None
    reason: str


def choose(thresholds: Sequence[Threshold], target_risk_percent: int | None) -> Threshold | None:
    """Return the threshold for a target risk, or for the smallest one; None if no threshold travels with the reader.

    Raises:
        ConfigError: There is no threshold for this target risk; the message lists those that there are.
    """
    ordered = sorted(thresholds, key=lambda threshold: threshold.target_risk_percent)
    if target_risk_percent is None:
        return ordered[0] if ordered else None
    for threshold in ordered:
        if threshold.target_risk_percent == target_risk_percent:
            return threshold
    known = ", ".join(f"{threshold.target_risk_percent}%" for threshold in ordered) or "none"
    raise ConfigError(
        f"target risk {target_risk_percent}%: no threshold for it travels with the reader. Known: {known}. A study has"
        " thresholds for its `metrics.target_risk_percent`, and `dualread export` writes them."
    )


def decide(confidence: float, threshold: Threshold | None) -> Decision:
    """Return whether an answer with this confidence is kept."""
    if threshold is None:
        reason = "no threshold travels with this reader; dualread export writes those of the study beside its readers"
        return Decision(keep=None, threshold=None, target_risk_percent=None, reason=reason)
    target = threshold.target_risk_percent
    if threshold.value is None:
        reason = f"no threshold keeps the risk at {target}% on {threshold.chosen_on}: {threshold.reason}"
        return Decision(keep=None, threshold=None, target_risk_percent=target, reason=reason)
    reason = f"kept if the confidence is at least {threshold.value:.4f}, chosen on {threshold.chosen_on} for"
    return Decision(
        keep=confidence >= threshold.value,
        threshold=threshold.value,
        target_risk_percent=target,
        reason=f"{reason} at most {target}% wrong among the kept answers",
    )

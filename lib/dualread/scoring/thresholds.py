"""Thresholds that travel with a reader, and the decision that one of them makes."""

from collections.abc import Sequence
from dataclasses import dataclass

from dualread.errors import ConfigError

EMPIRICAL, CERTIFIED = "empirical", "certified"


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """The smallest confidence at or above which answers are kept, chosen for a target risk on validation answers.

    Attributes:
        method: The method whose confidences it is for.
        rule: How it was chosen, see `evaluation.thresholds`: "empirical" if at most the target share of the validation
            answers that are kept is wrong; "certified" if this holds for new answers with high probability.
        target_risk_percent: The largest share of wrong answers, in percent, among those that are kept.
        value: The threshold; None if no threshold reaches the target on the validation answers.
        reason: Why there is no value; None if there is one.
    """

    method: str
    rule: str
    target_risk_percent: int
    value: float | None
    reason: str | None


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


def choose(thresholds: Sequence[Threshold], target_risk_percent: int | None, *, certified: bool) -> Threshold | None:
    """Return the threshold of a rule for a target risk, or for the smallest one; None if none was asked for or travels.

    Raises:
        ConfigError: The threshold that was asked for is not among them; the message lists those that are.
    """
    rule = CERTIFIED if certified else EMPIRICAL
    of_rule = sorted((one for one in thresholds if one.rule == rule), key=lambda one: one.target_risk_percent)
    wanted = [one for one in of_rule if target_risk_percent in (None, one.target_risk_percent)]
    if wanted or (target_risk_percent is None and not certified):
        return wanted[0] if wanted else None
    known = ", ".join(f"{one.rule} at {one.target_risk_percent}%" for one in thresholds) or "none"
    asked = rule if target_risk_percent is None else f"{rule} at {target_risk_percent}%"
    raise ConfigError(
        f"threshold {asked}: does not travel with the reader. Known: {known}. A study has thresholds for its"
        " `metrics.target_risk_percent`, and `dualread export` writes them beside its readers."
    )


def decide(confidence: float, threshold: Threshold | None) -> Decision:
    """Return whether an answer with this confidence is kept."""
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

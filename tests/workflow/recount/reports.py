"""What is printed of reports besides metrics of claims: counts, and filters that the validation reports certify."""

from collections.abc import Callable, Mapping
from fractions import Fraction

import polars as pl

from tests.workflow.recount import definitions

# The loss of a report, by how many claims are kept of it, and how many of these are unsupported.
_LOSSES: Mapping[str, Callable[[int, int], float]] = {
    "share": lambda kept, wrong: wrong / kept if kept else 0.0,
    "any": lambda kept, wrong: float(wrong > 0),
}
COUNTS: Mapping[str, Callable[[list[str], pl.DataFrame], int]] = {
    "reports": lambda reports, claims: len(reports),
    "reports_without_claim": lambda reports, claims: len(set(reports) - set(claims["question"])),
    "claims": lambda reports, claims: len(claims),
    "claims_without_label": lambda reports, claims: claims["label"].to_list().count(None),
}
METRICS = r"reports_(share|any)|filter_(share|any)_(threshold|kept|unsupported|none_kept|risk)_at_risk_\d+"


def of_metric(metric: str, chosen_on: pl.DataFrame, claims: pl.DataFrame) -> float | None:
    """Return the value of one of `METRICS` of labeled claims, whose filter is chosen on those of validation."""
    if metric.startswith("reports_"):
        return _rates(claims, metric.removeprefix("reports_"), 0.0)["risk"]
    _, loss, rest = metric.split("_", 2)
    kind, percent = rest.split("_at_risk_")
    threshold = _certified(chosen_on, loss, Fraction(int(percent), 100))
    return None if threshold is None else {"threshold": threshold, **_rates(claims, loss, threshold)}[kind]


def _rates(claims: pl.DataFrame, loss: str, threshold: float) -> dict[str, float | None]:
    n_kept = [(kept, wrong) for kept, wrong, _ in _counted(claims, threshold)]
    kept, wrong = (sum(of) for of in zip(*n_kept, strict=True))
    return {
        "kept": kept / len(claims),
        "unsupported": wrong / kept if kept else None,
        "none_kept": sum(k == 0 for k, _ in n_kept) / len(n_kept),
        "risk": sum(_LOSSES[loss](k, w) for k, w in n_kept) / len(n_kept),
    }


def _certified(claims: pl.DataFrame, loss: str, risk: Fraction) -> float | None:
    """Return the smallest confidence at which "the mean loss is at least `risk`" is rejected, in sequences.

    Downwards through confidences and five starts, three of them at 1. Above all confidences nothing is kept.
    """
    first = [1.0, 1.0, 1.0, float(1 - risk), 0.0]
    level, found, largest = 0.0, None, max(claims["confidence"])
    for threshold in sorted({*claims["confidence"], *first}, reverse=True):
        level += 0.1 / 5 * first.count(threshold)
        if level > 0 and _p_value(claims, loss, threshold, risk) <= level * (1 + 1e-12):
            found = threshold if threshold <= largest else found
        else:
            level = 0.0
    return found


def _p_value(claims: pl.DataFrame, loss: str, threshold: float, risk: Fraction) -> float:
    losses: dict[int, list[float]] = {}
    for kept, wrong, cluster in _counted(claims, threshold):
        losses.setdefault(cluster, []).append(_LOSSES[loss](kept, wrong))
    most = max(map(len, losses.values()))
    if most == 1 and loss == "any":
        return definitions.binomial_p(int(sum(map(sum, losses.values()))), len(losses), risk)
    balances = [sum(of) - float(risk) * len(of) for _, of in sorted(losses.items())]
    return definitions.p_of_bets(balances, risk, most)


def _counted(claims: pl.DataFrame, threshold: float) -> list[tuple[int, int, int]]:
    """Return, of each report with a labeled claim, how many are kept, how many of these are wrong, and its cluster."""
    found: dict[str, tuple[int, int, int]] = {}
    columns = claims.select("sample_id", "confidence", "correct", "cluster")
    for name, confidence, correct, cluster in columns.iter_rows():
        report, keeps = name.rpartition("#")[0], confidence >= threshold
        kept, wrong, _ = found.get(report, (0, 0, cluster))
        found[report] = (kept + keeps, wrong + (keeps and not correct), cluster)
    return list(found.values())

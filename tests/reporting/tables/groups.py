"""A maker of small tables of groups of answers."""

from dualread.artifacts.tables import from_rows
from dualread.schema.columns import SUBGROUPS


def row(method, group, metric, estimate, **more):
    """A value with an interval, .05 to each side, and one for all groups, .1 to each side."""
    known = {} if estimate is None else {"low": estimate - 0.05, "high": estimate + 0.05}
    if estimate is not None and group is not None:
        known |= {"simultaneous_low": estimate - 0.1, "simultaneous_high": estimate + 0.1}
    return {
        "study": "embedded", "backbone": "tiny", "actor": "rlvr", "seed": 17, "dataset": "slake", "by": "sex",
        "method": method, "group": group, "metric": metric, "estimate": estimate, "n": 100, "n_clusters": 50,
        **known, "reason": "one class only" if estimate is None else None, **more,
    }  # fmt: skip


def table(*rows):
    return from_rows(list(rows), SUBGROUPS)


ROWS = (
    row("psr", "f", "auroc", 0.7, p_holm=0.04, difference=0.2),
    row("psr", "m", "auroc", 0.5, p_holm=0.05),
    row("psr", None, "auroc", 0.6),
    row("psr", "f", "brier", 0.3),
    row("psr", "m", "brier", None),
    row("psr", "f", "accuracy", 0.8, n=70),
    row("psr", "f", "certified_threshold_at_risk_10", 0.85),
    row("psr", "m", "certified_threshold_at_risk_10", None),
    row("psr", "m", "natural_ccg_auc", 0.5),
    row("psr", "m", "natural_few_donors", 1.0),
    row("base", "f", "auroc", 0.9, actor="base", seed=0),
    row("psr", "f", "auroc", 0.1, seed=29),
    row("psr", "f", "auroc", 0.2, seed=43),  # not shown
)

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

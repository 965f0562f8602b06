"""Metrics for a table in which all values differ, and whose names can be swapped."""

from dualread.evaluation.controls import REPORT_COUNTS
from dualread.plugins import load
from dualread.reporting.tables.values import Value
from dualread.stages import build_table
from tests.reporting.tables import cases
from tests.reporting.tables.cases import CASES, DIGITS
from tests.reporting.tables.layouts import estimate, metrics

SEEDS = (17, 29, 43)
# Metrics that the table computes from other metrics or other methods.
DERIVED = ("paired_delta", "retained_low_percent", "retained_high_percent")
# Metrics of an actor, on which its methods must agree.
OF_ACTOR = (
    "accuracy",
    "accuracy_drop",
    "answers_changed",
    "shuffled_accuracy",
    "shuffled_accuracy_drop",
    *REPORT_COUNTS,
)


def stands_once(name, key):
    """Whether the value belongs to the one actor whose answers all methods of the table judge."""
    return name == "ccg" and key.metric not in ("natural_ccg_auc", "paired_delta")


def keys_of(name):
    """The keys of all cells of the table."""
    nothing = Value(mean=None, std=None, n_runs=0, n=None)
    return list(cases.read(name, CASES[name].build(name, dict.fromkeys(CASES[name].sample, nothing))))


def rows_of(name, keys=None):
    """Metrics in which any two cells print another mean: .101, .102, ..., a tenth of itself apart by seed.

    A fifth of the last digit is added, so that no mean over six of them is half way between two printed numbers.
    """
    keys = [key for key in keys_of(name) if key.metric not in DERIVED] if keys is None else keys
    actors = {of.name: of.actor for of in CASES[name].layout.methods}
    numbers, rows = {}, []
    for key in keys:
        is_shared = key.metric in OF_ACTOR
        what = key._replace(method=actors[key.method]) if is_shared else key
        k = numbers.setdefault(what, len(numbers) + 1)
        methods = actors if stands_once(name, key) else [key.method]
        mean = (0.1002 + k / 1000) * 10 ** (3 - DIGITS.get(key.metric, 3))
        metric = "imputed_share" if key.metric == "parse_rate" else key.metric
        rows += [
            estimate(
                **{"method": method, "metric": metric, "value": mean * (1 + (s - 1) / 10), "seed": seed},
                **{"dataset": key.dataset, "subset": key.subset, "backbone": key.backbone},
            )
            for method in methods
            for s, seed in enumerate(SEEDS)
        ]
    return rows


def build(name, rows):
    return build_table.build(load("tables", name), metrics(*rows), CASES[name].layout)


def cells_of(name, rows):
    return cases.read(name, build(name, rows))

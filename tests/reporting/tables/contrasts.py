"""A maker of small contrasts tables."""

from dualread.artifacts.tables import from_rows
from dualread.schema.columns import CONTRASTS


def row(method, metric, estimate, *, baseline=None, contrast=None, **key):
    interval = (None, None) if estimate is None else (estimate - 0.1, estimate + 0.1)
    return {
        "study": "embedded", "backbone": "tiny", "contrast": contrast, "dataset": "slake", "split": "test",
        "metric": metric, "method": method, "baseline": baseline, "estimate": estimate, "seed_std": 0.02, "n_seeds": 3,
        "low": interval[0], "high": interval[1], "p": None if baseline is None or estimate is None else 0.01,
        "p_holm": None if baseline is None or estimate is None else 0.04, "n": 100, "n_clusters": 10,
        "p_at_most": None if baseline is None or estimate is None else False,
        "p_holm_at_most": None if baseline is None or estimate is None else False,
        "n_undefined": None if estimate is None else 0, "short": None,
        "reason": "one class only" if estimate is None else None, **key,
    }  # fmt: skip


def table(*rows):
    return from_rows(list(rows), CONTRASTS)

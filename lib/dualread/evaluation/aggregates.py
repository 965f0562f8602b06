"""Equal-weight means over the OOD data sets, per seed: `ood6` for answers, `ood_ccg` for donor pairs."""

from collections.abc import Sequence

import polars as pl

from dualread.evaluation.answer_metrics import ANSWER_METRICS, FURTHER_METRICS
from dualread.evaluation.conditions import ANSWERS_CHANGED
from dualread.evaluation.controls import forced_claims_in
from dualread.evaluation.estimates import SUBSETS
from dualread.evaluation.metrics.grounding import FEW_IMAGES_OF
from dualread.evaluation.pair_metrics import PAIR_METRICS
from dualread.evaluation.thresholds import is_rate

KEYS = ("study", "backbone", "actor", "seed", "dataset", "split", "subset", "method", "metric")
SPLIT = "test"

# A mean of counts over data sets says nothing. The mean of *_few_sources is the share of data sets with few sources.
RATES = {
    mean: tuple(name for name, metric in metrics.items() if not metric.is_count)
    for mean, metrics in (("ood6", ANSWER_METRICS), ("ood_ccg", PAIR_METRICS))
}


def aggregate(metrics: pl.DataFrame, *, ood: Sequence[str], ood_ccg: Sequence[str]) -> pl.DataFrame:
    """Return the means over the data sets `ood`, and `ood_ccg`, of every run in a metrics table.

    A mean is null, with a reason, where a member has no value, or where there are no such data sets.
    """
    of_thresholds = sorted(filter(is_rate, metrics["metric"].unique()))
    further = [name for name in (*FURTHER_METRICS, ANSWERS_CHANGED.name) if name in set(metrics["metric"])]
    forced = [
        name
        for metric in forced_claims_in(metrics)
        for name in (metric, *(f"{metric.removesuffix('_ccg_auc')}_{flag}" for flag in FEW_IMAGES_OF.values()))
    ]
    names = {
        "ood6": (tuple(ood), (*RATES["ood6"], *further, *of_thresholds)),
        "ood_ccg": (tuple(ood_ccg), (*RATES["ood_ccg"], *forced)),
    }
    known = {tuple(row[key] for key in KEYS): row for row in metrics.iter_rows(named=True)}
    of_run = ("study", "backbone", "actor", "seed", "method")
    runs = [dict(zip(of_run, values, strict=True)) for values in sorted(set(metrics.select(of_run).iter_rows()))]
    rows = [
        _mean_row(known, {**run, "dataset": name, "split": SPLIT, "subset": subset, "metric": metric}, members)
        for run in runs
        for name, (members, metric_names) in names.items()
        for subset in SUBSETS
        for metric in metric_names
        if subset == "all" or not is_rate(metric)
    ]
    return pl.DataFrame(rows, schema=metrics.schema)


def _mean_row(known: dict[tuple, dict], key: dict, members: Sequence[str]) -> dict:
    rows = [known.get(tuple({**key, "dataset": member}[name] for name in KEYS)) for member in members]
    reason = "; ".join(
        f"{member}: {'missing' if row is None else row['reason']}"
        for member, row in zip(members, rows, strict=True)
        if row is None or row["estimate"] is None
    )
    reason = reason if members else "the study has no OOD data sets"
    values = [row["estimate"] for row in rows if row is not None]
    return {
        **key,
        "estimate": None if reason else sum(values) / len(values),
        "low": None,
        "high": None,
        "n": sum(row["n"] for row in rows if row is not None),
        "n_clusters": sum(row["n_clusters"] for row in rows if row is not None),
        "reason": reason or None,
    }

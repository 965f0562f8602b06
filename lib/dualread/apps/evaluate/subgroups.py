"""Every metric of groups of answers, such as those about women or from one hospital, by columns of the table."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import polars as pl

from dualread.apps.evaluate.evaluation_data import BY, EvaluationData
from dualread.apps.evaluate.metrics import LEFT_OUT, draws_of, withheld
from dualread.apps.evaluate.results import Groups
from dualread.apps.evaluate.thresholds import SCHEMA, ThresholdOptions, threshold_rows, with_choosers
from dualread.evaluation.answer_metrics import FURTHER_METRICS
from dualread.evaluation.subgroups import by_group, worst_groups
from dualread.evaluation.thresholds import CERTIFIED

_TEXTS: dict[str, Any] = dict.fromkeys(("dataset", "by", "method", "group", "metric", "reason"), pl.String)


def groups_of(
    parts: Sequence[EvaluationData], by: Sequence[str], options: ThresholdOptions, *, replicates: int, seed: int
) -> Groups:
    """Return the metrics of the groups of each column, on the resamples of `metrics.measure`, and their thresholds."""
    rows: list[dict[str, Any]] = []
    worst: list[dict[str, Any]] = []
    for cells, column, (method, joined) in ((c, name, m) for c in parts for name in by for m in c.methods.items()):
        place = {"dataset": cells.dataset, "by": column, "method": method}
        labels = cells.groups.filter(method=method).select("sample_id", group=f"{BY}{column}")
        draws = draws_of(cells, method, replicates=replicates, seed=seed)
        known = by_group(joined, labels, draws, tuple(FURTHER_METRICS))
        of_column = [{**place, **withheld(row, cells, method)} for row in known if row["metric"] not in LEFT_OUT]
        rows += of_column
        worst += [{**place, **row} for row in worst_groups(of_column)]
    frames = [pl.DataFrame(table, schema_overrides=_TEXTS, infer_schema_length=None) for table in (rows, worst)]
    chosen = _group_thresholds(parts, by, options) if options.target_risks else None
    return Groups(metrics=frames[0], worst=frames[1], thresholds=chosen)


def _group_thresholds(parts: Sequence[EvaluationData], by: Sequence[str], options: ThresholdOptions) -> pl.DataFrame:
    """Return the thresholds of each group, chosen on the calibration answers of the group.

    Delta is shared by the groups of a column, so that all certified thresholds of a method and target risk are right
    with the probability 1 - delta.
    """
    rows = []
    for (cells, chooser), column in product(with_choosers(parts), by):
        groups = sorted(set(cells.groups[f"{BY}{column}"].drop_nulls()))
        shared = replace(options, share_delta=options.share_delta * max(len(groups), 1))
        for group in groups:
            of_group, choosing = (_of_group(data, column, group) for data in (cells, chooser))
            place = {"dataset": cells.dataset, "by": column, "group": group}
            for name, joined in of_group.methods.items():
                if name in choosing.methods or len(choosing.methods) == len(chooser.methods) == 1:
                    of_method = threshold_rows(replace(of_group, methods={name: joined}), choosing, shared)
                    rows += [{**row, **place} for row in of_method]
                else:
                    why = {"method": name, "rule": CERTIFIED, "reason": "no calibration answers of this group"}
                    rows += [{**place, **why, "target_risk": risk} for risk in options.target_risks]
    return pl.DataFrame(rows, schema={"by": pl.String, "group": pl.String, **SCHEMA})


def _of_group(cells: EvaluationData, column: str, group: str) -> EvaluationData:
    """Return the answers of one group, of the methods that have some."""
    chosen = cells.groups.filter(pl.col(f"{BY}{column}") == group).select("method", "sample_id")
    methods = {
        name: replace(joined, answers=joined.answers.join(chosen.filter(method=name), on="sample_id", how="semi"))
        for name, joined in cells.methods.items()
        if name in set(chosen["method"])
    }
    return replace(cells, methods=methods)

"""Every metric of groups of answers, such as those about women or from one hospital, by columns of the table."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from dualread.apps.evaluate.evaluation_data import BY, EvaluationData
from dualread.apps.evaluate.metrics import LEFT_OUT, draws_of, withheld
from dualread.apps.evaluate.printed import Difference, Estimate, PValue, ReportTable, text_of
from dualread.apps.evaluate.results import Groups
from dualread.apps.evaluate.thresholds import SCHEMA, ThresholdOptions, chooser_of, threshold_rows, threshold_table
from dualread.evaluation.answer_metrics import ACCURACY, AUROC, ECE, FURTHER_METRICS
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC
from dualread.evaluation.statistics.proportion import ALPHA
from dualread.evaluation.subgroups import FEWEST, by_group, worst_groups
from dualread.evaluation.thresholds import CERTIFIED

_SHOWN = (ACCURACY.name, AUROC.name, ECE.name, NATURAL_CCG_AUC.name)
_TEXTS: dict[str, Any] = dict.fromkeys(("dataset", "by", "method", "group", "metric", "reason"), pl.String)


def groups_of(parts: Sequence[EvaluationData], by: Sequence[str], *, replicates: int, seed: int) -> Groups | None:
    """Return the metrics of the groups of each column, on the resamples of `metrics.measure`; None without columns."""
    rows: list[dict[str, Any]] = []
    worst: list[dict[str, Any]] = []
    for cells, column, (method, joined) in ((c, name, m) for c in parts for name in by for m in c.methods.items()):
        place = {"dataset": cells.dataset, "by": column, "method": method}
        labels = cells.groups.filter(method=method).select("sample_id", group=f"{BY}{column}")
        draws = draws_of(cells, method, replicates=replicates, seed=seed)
        known = (
            row for row in by_group(joined, labels, draws, tuple(FURTHER_METRICS)) if row["metric"] not in LEFT_OUT
        )
        of_column = [{**place, **withheld(row, cells, method)} for row in known]
        rows += of_column
        worst += [{**place, **row} for row in worst_groups(of_column)]
    frames = [pl.DataFrame(table, schema_overrides=_TEXTS, infer_schema_length=None) for table in (rows, worst)]
    return Groups(metrics=frames[0], worst=frames[1], thresholds=None) if by else None


def group_thresholds(
    parts: Sequence[EvaluationData],
    by: Sequence[str],
    calibration: Sequence[EvaluationData],
    options: ThresholdOptions,
) -> pl.DataFrame:
    """Return the thresholds of each group, chosen on the calibration answers of the group.

    Delta is shared by the groups of a column, so that all certified thresholds of a method and target risk are right
    with the probability 1 - delta.
    """
    rows = []
    for cells, column in ((cells, column) for cells in parts for column in by):
        groups, chooser = sorted(set(cells.groups[f"{BY}{column}"].drop_nulls())), chooser_of(cells, calibration)
        shared = replace(options, share_delta=options.share_delta * len(groups))
        for group in groups:
            of_group, choosing = _of_group(cells, column, group), _of_group(chooser, column, group)
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


def group_tables(groups: Groups, cells: EvaluationData) -> Iterator[ReportTable]:
    """Yield what is known of the groups of each column and method, the largest first, and of their thresholds."""
    if groups.thresholds is not None:
        certified = cells.rows_of(groups.thresholds).filter(rule=CERTIFIED)
        known = certified.drop_nulls("threshold").with_columns(method=pl.format("{} {}, {}", "by", "group", "method"))
        n_groups = f"{len(known)} of {len(certified)} certified thresholds of groups, which share delta"
        yield replace(threshold_table(known, cells), caption=n_groups, notes=[n_groups])
    for (column, method), of_column in cells.rows_of(groups.metrics).group_by("by", "method", maintain_order=True):
        rows = {(row["group"], row["metric"]): row for row in of_column.iter_rows(named=True)}
        sizes = {group: row for (group, metric), row in rows.items() if metric == ACCURACY.name}
        names = sorted(sizes, key=lambda group: (group is not None, -sizes[group]["n"]))
        metrics = [metric for metric in _SHOWN if any(rows[group, metric]["n"] for group in sizes)]
        worst = cells.rows_of(groups.worst).filter(pl.col("metric").is_in(metrics), by=column, method=method).to_dicts()
        known = [sizes[group] for group in names if group is not None]
        yield ReportTable(
            caption=f"By {column}, {method}: intervals hold for all groups together",
            columns=(
                f"by {column}" + (f", {method}" if len(cells.methods) > 1 else ""),
                *("answers", f"{cells.unit}s", *metrics),
            ),
            rows=[
                (
                    group or "(no value)",
                    *(sizes[group][name] for name in ("n", "n_clusters")),
                    *(
                        Estimate(row["estimate"], row["simultaneous_low"], row["simultaneous_high"])
                        for row in (rows[group, metric] for metric in metrics)
                    ),
                )
                for group in names
            ],
            notes=list(_about_groups(known, [*rows.values()], worst, f"{cells.unit}s")),
        )


def _about_groups(sizes: Sequence[dict], rows: Sequence[dict], worst: Sequence[dict], units: str) -> Iterator[str]:
    """Yield what is found of the groups of one column and method, whose rows of accuracy are `sizes`."""
    few = [row for row in sizes if row["n_clusters"] < FEWEST]
    if len(few) == len(sizes):
        n = max((row["n_clusters"] for row in sizes), default=0)
        yield f"no intervals: none of {len(sizes)} groups has {FEWEST} {units}, the largest has {n}; write larger ones"
        return
    none = f"; the {len(few)} groups with fewer than {FEWEST} {units} have none" if few else ""
    yield f"intervals: of all groups of the column together (95%){none}"
    for row in worst:
        if row["estimate"] is not None:
            chosen = f"{row['group']!r}, of {row['n_groups']} groups"
            shown = text_of(Estimate(row["estimate"], row["low"], row["high"]), 3, 3)
            yield f"worst {row['metric']}: {chosen}: {shown}, the interval of the worst group, whichever it is"
    for metric in _SHOWN:
        tested = [row for row in rows if row["metric"] == metric and row["p_holm"] is not None]
        differing = [
            f"{row['group']!r} {text_of(Difference(row['difference'], None, None), 3, 3)}"
            f" (p {text_of(PValue(row['p_holm'], row['p_holm_at_most']), 3, 3)})"
            for row in tested
            if row["p_holm"] < ALPHA
        ]
        if tested:
            yield f"{metric} minus that of the rest (Holm): {', '.join(differing) or 'no group differs significantly'}"

"""Stage measure_subgroups: every metric of one method of one actor, on groups of the test answers.

inputs:  predictions; manifest/<dataset>/<split>; graded/<dataset>/<split>/<condition>; pairs/<dataset>/<split>, and
         questions/<dataset>/<split> of reports, as for compute_metrics: the test splits, and one validation split
output:  subgroups.parquet, with the intervals of `evaluation.subgroups`; certified thresholds share delta among groups
A data set that has no value in a column has no rows of it. Where there are no confidences, all values are null.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from dualread.artifacts.tables import from_rows, reason_of, write_table
from dualread.data.questions.roles import unit_of
from dualread.evaluation.answer_metrics import ANSWER_METRICS
from dualread.evaluation.pair_metrics import PAIR_METRICS
from dualread.evaluation.statistics.bootstrap import ClusterDraws
from dualread.evaluation.statistics.clusters import in_unit
from dualread.evaluation.subgroups import by_group, certified_rows
from dualread.evaluation.without_confidences import of_scores
from dualread.schema.columns import MANIFEST, SUBGROUPS
from dualread.schema.metrics import MeasureSubgroupsSpec
from dualread.stages._joined import grouped_by, read, read_joined

_OF_MANIFEST = ("sample_id", "question_key", "answer_type", "image_id", "cluster_id", "patient_id")


def compute(spec: MeasureSubgroupsSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Read the inputs, write subgroups.parquet, and return one line about it."""
    run, rows = {"study": spec.study, **spec.run}, []
    reason = reason_of(inputs["predictions"] / "predictions.parquet")
    for dataset in spec.datasets:
        columns = grouped_by(inputs, f"manifest/{dataset}/test", spec.subgroups)
        known = _without(spec, columns, reason) if reason else _measured(spec, dataset, columns, inputs)
        rows += [{**run, "dataset": dataset, **row} for row in known]
    write_table(out / "subgroups.parquet", from_rows(rows, SUBGROUPS), SUBGROUPS)
    groups = {(row["dataset"], row["by"], row["group"]) for row in rows if row["group"] is not None}
    return f"wrote {len(rows)} estimates of {len(groups)} groups" + (f": {reason}" if reason else "")


def _without(spec: MeasureSubgroupsSpec, columns: Mapping[str, pl.DataFrame], reason: str) -> Iterator[dict]:
    """Yield the rows of the groups of a method without confidences."""
    for by, labels in columns.items():
        for group, n in labels.group_by("group").len().sort("group", nulls_last=True).iter_rows():
            for name in (*ANSWER_METRICS, *(spec.metrics.further or ()), *PAIR_METRICS):
                yield {"by": by, "group": group, "metric": name, "n": n, "n_clusters": 0, "reason": reason}


def _measured(
    spec: MeasureSubgroupsSpec, dataset: str, columns: Mapping[str, pl.DataFrame], inputs: Mapping[str, Path]
) -> Iterator[dict]:
    """Yield the rows of the groups of each column."""
    if not columns:
        return
    manifest, questions = read(inputs, f"manifest/{dataset}/test", MANIFEST, _OF_MANIFEST), f"questions/{dataset}/test"
    drawn = read(inputs, questions, MANIFEST, _OF_MANIFEST) if questions in inputs else manifest
    clusters, unit = tuple(sorted(drawn["cluster_id"].unique())), unit_of(drawn)
    names, replicates = (spec.study, dataset, "test"), spec.metrics.bootstrap.replicates
    draws = ClusterDraws(names=names, cluster_ids=clusters, replicates=replicates)
    joined = read_joined(dataset, "test", manifest, inputs["predictions"], inputs)
    chosen_on, groups = None, {}
    if dataset == spec.thresholds_from:
        of_validation = read(inputs, f"manifest/{dataset}/validation", MANIFEST, _OF_MANIFEST)
        chosen_on = read_joined(dataset, "validation", of_validation, inputs["predictions"], inputs).answers
        groups = grouped_by(inputs, f"manifest/{dataset}/validation", spec.subgroups)
    for by, labels in columns.items():
        rows = by_group(joined, labels, draws, spec.metrics.further or ())
        if chosen_on is not None:
            choosing = chosen_on.join(groups.get(by, labels.clear()), on="sample_id")
            answers = joined.answers.join(labels, on="sample_id")
            rows += certified_rows(answers, choosing, spec.metrics.target_risk_percent)
        for row in map(of_scores, rows) if spec.uncalibrated else rows:
            reasons = {key: in_unit(row.get(key), unit) for key in ("reason", "difference_reason")}
            yield {"by": by, **row, **reasons}

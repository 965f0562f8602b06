"""Stage compute_metrics: every metric of one method of one actor. Labels meet confidences here and nowhere else.

Inputs:  predictions; manifest/<dataset>/<split>; graded/<dataset>/<split>/<condition>;
         pairs/<dataset>/<split> where the data set admits donors; of reports, whose claims are in that manifest and in
         those pairs, questions/<dataset>/<split>: resamples are those of all images, with claims or without;
         asked_pairs/<dataset>/<split>: the pairs of these questions, which forced claims are summed by;
         view/<view>/<dataset>/<split>/original where the method's choices make answer sets;
         compared/<dataset>/<split>/original: the graded answers of the actor that answers_changed compares with
Outputs: metrics.parquet
         replicates.safetensors: what tables need to compare methods on all questions, at <dataset>/<split>/<metric>. Of
         metrics of answers, float64 [B]: the metric in every resample of the images, NaN where it is undefined; all
         methods of the study share the resamples. Of CCG-AUC, float64 [pairs]: the value of every donor pair in the
         order of the pairs table, NaN outside the decisive set; the numbers of their source and donor images are
         <dataset>/<split>/pair_images, int64 [2, pairs]. Of claims, see `controls.report_pairs`.
Predictions without rows say why there are none; every metric is then null, with this reason.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dualread.artifacts.tables import from_rows, reason_of, write_table
from dualread.artifacts.tensors import write_tensors
from dualread.data.questions.roles import OF_UNIT, unit_of
from dualread.errors import ArtifactError
from dualread.evaluation.answer_metrics import STORED
from dualread.evaluation.claim_filter import Filters, choose_filters, filter_rows, without_filters
from dualread.evaluation.columns import CellColumns, Columns
from dualread.evaluation.conditions import condition_rows, family_rows
from dualread.evaluation.estimates import MethodEstimates, estimate
from dualread.evaluation.samples import PAIR_IMAGES
from dualread.evaluation.side_by_side import conditions_of
from dualread.evaluation.statistics.bootstrap import ClusterDraws
from dualread.evaluation.statistics.clusters import in_unit
from dualread.evaluation.thresholds import Thresholds, choose, threshold_rows
from dualread.evaluation.without_confidences import OF_PROBABILITIES, of_scores, without_confidences
from dualread.schema.columns import MANIFEST, METRICS
from dualread.schema.metrics import ComputeMetricsSpec
from dualread.stages._choices import answer_set_rows
from dualread.stages._joined import changed_rows, counted, forced_pairs, read, read_joined

_OF_MANIFEST = ("sample_id", "question_key", "answer_type", "content_family", "image_id", "cluster_id", "patient_id")


def compute(spec: ComputeMetricsSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Read the inputs, write metrics.parquet and replicates.safetensors, and return one line about it."""
    data_splits = [(name, split) for name, splits in spec.splits.items() for split in splits]
    if reason := reason_of(inputs["predictions"] / "predictions.parquet"):
        target, further, rows = spec.metrics.target_risk_percent, spec.metrics.named, []
        for dataset, split in data_splits:
            prefix, manifest = f"graded/{dataset}/{split}/", _manifest((dataset, split), inputs)
            conditions = conditions_of(name.removeprefix(prefix) for name in inputs if name.startswith(prefix))
            of_claims = f"questions/{dataset}/{split}" in inputs
            undefined = without_confidences(manifest, target, reason, conditions, further, of_claims=of_claims)
            undefined = [*undefined, *counted((dataset, split), inputs)]
            undefined += without_filters(target, reason) if of_claims else []
            rows += [{"dataset": dataset, "split": split, **row} for row in undefined]
        _write(out, spec, rows, {})
        return f"wrote no estimates: {reason}"
    chosen_on, percents = _threshold_answers(spec, data_splits, inputs), spec.metrics.target_risk_percent
    # A reason is in the unit of the answers that it is about: those that choose may be of images, others of patients.
    unit = unit_of(read(inputs, f"manifest/{spec.thresholds_from}", MANIFEST, OF_UNIT))
    of_claims = f"questions/{spec.thresholds_from}" in inputs
    thresholds = choose(chosen_on, percents, unit)
    filters = choose_filters(chosen_on, percents, unit) if of_claims else {}
    rows, replicates, n_answers, n_pairs = [], {}, 0, 0
    for dataset, split in data_splits:  # one after the other, because each may fill the memory
        judged, comparable, n = _judged(spec, (dataset, split), inputs, thresholds, filters)
        rows += [{"dataset": dataset, "split": split, **row} for row in judged]
        stored = (name for name in STORED if not (spec.uncalibrated and name.startswith(OF_PROBABILITIES)))
        tensors = {name: comparable.replicates[name] for name in stored if name in comparable.replicates}
        for name, of_pairs in comparable.pairs.items():
            tensors |= {name: of_pairs.stored(), PAIR_IMAGES: np.stack([of_pairs.source, of_pairs.donor])}
        replicates |= {f"{dataset}/{split}/{name}": values for name, values in tensors.items()}
        n_answers, n_pairs = n_answers + n[0], n_pairs + n[1]
    _write(out, spec, rows, replicates)
    n_undefined = sum(row["estimate"] is None for row in rows)
    return (
        f"{_main_results(rows, spec.thresholds_from.partition('/')[0])}; read {n_answers} answers and {n_pairs} donor"
        f" pairs, wrote {len(rows)} estimates ({n_undefined} undefined)"
    )


def _write(out: Path, spec: ComputeMetricsSpec, rows: Sequence[dict], replicates: Mapping[str, np.ndarray]) -> None:
    run = {"study": spec.study, **spec.run}
    write_table(out / "metrics.parquet", from_rows([{**run, **row} for row in rows], METRICS), METRICS)
    write_tensors(out / "replicates.safetensors", replicates, run)


def _manifest(data_split: tuple[str, str], inputs: Mapping[str, Path]) -> pl.DataFrame:
    return read(inputs, f"manifest/{'/'.join(data_split)}", MANIFEST, _OF_MANIFEST)


def _threshold_answers(
    spec: ComputeMetricsSpec, data_splits: list[tuple[str, str]], inputs: Mapping[str, Path]
) -> Columns:
    """Return the answers on which thresholds are chosen."""
    for data_split in data_splits:
        if "/".join(data_split) == spec.thresholds_from:
            joined = read_joined(*data_split, _manifest(data_split, inputs), inputs["predictions"], inputs)
            return CellColumns.of(joined).answers
    known = ", ".join("/".join(data_split) for data_split in data_splits)
    raise ArtifactError(f"thresholds_from: {spec.thresholds_from} is not evaluated. Expected one of: {known}.")


def _judged(
    spec: ComputeMetricsSpec,
    data_split: tuple[str, str],
    inputs: Mapping[str, Path],
    thresholds: Thresholds,
    filters: Filters,
) -> tuple[list[dict], MethodEstimates, tuple[int, int]]:
    """Return the estimates of one (data set, split), what comparisons need, and the number of answers and of pairs."""
    manifest, questions = _manifest(data_split, inputs), f"questions/{'/'.join(data_split)}"
    joined = read_joined(*data_split, manifest, inputs["predictions"], inputs)
    cell, answers, conditions = CellColumns.of(joined), joined.answers, joined.conditions
    n_pairs = next((len(rows) for rows in (joined.pairs, joined.fixed) if not isinstance(rows, str)), 0)
    drawn = read(inputs, questions, MANIFEST, _OF_MANIFEST) if questions in inputs else manifest
    report_pairs = forced_pairs(data_split, joined.fixed, drawn, inputs)
    del joined  # its tables hold texts, the columns numbers
    clusters, n_resamples = tuple(sorted(drawn["cluster_id"].unique())), spec.metrics.bootstrap.replicates
    draws = ClusterDraws(names=(spec.study, *data_split), cluster_ids=clusters, replicates=n_resamples)
    estimates, comparable = estimate(cell, draws, spec.metrics.further or ())
    unit = unit_of(drawn)
    rows = [
        *_in_unit([*estimates, *family_rows(answers, manifest, draws)], unit),
        *threshold_rows(cell.answers, thresholds, unit),
        *(filter_rows(cell.answers, filters) if filters else ()),
        *_in_unit([*condition_rows(conditions, draws), *counted(data_split, inputs)], unit),
        *_in_unit(changed_rows(data_split, manifest, inputs), unit),
        *answer_set_rows(spec, data_split, inputs),
    ]
    rows = [dict(of_scores(row)) for row in rows] if spec.uncalibrated else rows
    return rows, replace(comparable, pairs={**comparable.pairs, **report_pairs}), (len(answers), n_pairs)


def _in_unit(rows: Iterable[dict], unit: str) -> Iterator[dict]:
    """Yield rows of metrics with reasons about what is resampled."""
    yield from ({**row, "reason": in_unit(row["reason"], unit)} for row in rows)


def _main_results(rows: Sequence[Mapping[str, Any]], dataset: str) -> str:
    """Return the results on a data set's test split in words, for those who watch a study grow."""
    at = {"dataset": dataset, "split": "test", "subset": "all"}
    row_of = {row["metric"]: row for row in rows if all(row[key] == value for key, value in at.items())}
    words = []
    for metric, name in (("auroc", "AUROC"), ("brier", "Brier score"), ("natural_ccg_auc", "Natural CCG-AUC")):
        row = row_of.get(metric)
        if row is None or row["estimate"] is None:
            words.append(f"{name} undefined")
        else:
            interval = "" if row["low"] is None else f" [{row['low']:.3f}, {row['high']:.3f}]"
            words.append(f"{name} {row['estimate']:.3f}{interval}")
    return f"{dataset}/test: {', '.join(words)}"

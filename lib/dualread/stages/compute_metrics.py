"""Stage compute_metrics: every metric of one method of one actor. Labels meet confidences here and nowhere else.

inputs:  predictions; manifest/<dataset>/<split>; graded/<dataset>/<split>/<condition>;
         pairs/<dataset>/<split> where the data set admits donors
output:  metrics.parquet
         replicates.safetensors: what tables need to compare methods on all questions, at <dataset>/<split>/<metric>. Of
         metrics of answers, float64 [B]: the metric in every resample of the images, NaN where it is undefined; all
         methods of the study share the resamples. Of CCG-AUC, float64 [pairs]: the value of every donor pair in the
         order of the pairs table, NaN outside the decisive set; the numbers of their source and donor images are
         <dataset>/<split>/pair_images, int64 [2, pairs].
Predictions without rows say why there are none; every metric is then null, with this reason.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dualread.artifacts.schemas.manifest import MANIFEST
from dualread.artifacts.schemas.metrics import METRICS
from dualread.artifacts.tables import from_rows, reason_of, scan_table, write_table
from dualread.artifacts.tensors import write_tensors
from dualread.errors import ArtifactError
from dualread.evaluation.answer_metrics import STORED
from dualread.evaluation.columns import CellColumns
from dualread.evaluation.estimates import Kept, estimate
from dualread.evaluation.families import family_rows
from dualread.evaluation.samples import PAIR_IMAGES
from dualread.evaluation.statistics.bootstrap import ImageDraws
from dualread.evaluation.thresholds import choose, threshold_rows
from dualread.evaluation.without_confidences import without_confidences
from dualread.specs.metrics import ComputeMetricsSpec
from dualread.stages._joined import read, read_joined

_OF_MANIFEST = ("sample_id", "question_key", "answer_type", "content_family", "image_id")


def compute(spec: ComputeMetricsSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Read the inputs, write metrics.parquet and replicates.safetensors, and return one line about it.

    Raises:
        ArtifactError: An input is missing, or predictions, grades, manifest and pairs do not fit together.
    """
    shards = [(name, split) for name, splits in spec.splits.items() for split in splits]
    _check_predictions(inputs["predictions"], spec, shards)
    manifests = {shard: read(inputs, f"manifest/{'/'.join(shard)}", MANIFEST, _OF_MANIFEST) for shard in shards}
    if reason := reason_of(inputs["predictions"] / "predictions.parquet"):
        of = {shard: without_confidences(manifests[shard], spec.target_risk_percent, reason) for shard in shards}
        _write(out, spec, [{"dataset": d, "split": s, **row} for (d, s), rows in of.items() for row in rows], {})
        return f"wrote no estimates: {reason}"
    predicted = inputs["predictions"]
    found = {shard: read_joined(*shard, manifest, predicted, inputs) for shard, manifest in manifests.items()}
    cells = {shard: CellColumns.of(joined) for shard, joined in found.items()}
    thresholds = choose(_chooser(spec, cells).answers, spec.target_risk_percent)
    rows, replicates, n_answers, n_pairs = [], {}, 0, 0
    for (dataset, split), joined in found.items():
        # What is known about a cell is freed after its turn.
        manifest, cell = manifests[dataset, split], cells.pop((dataset, split))
        draws = ImageDraws(
            names=(spec.study, dataset, split),
            image_ids=tuple(sorted(manifest["image_id"].unique())),
            replicates=spec.replicates,
        )
        estimates, kept = estimate(cell, draws)
        points = [*family_rows(joined.answers, manifest, draws), *threshold_rows(cell.answers, thresholds)]
        rows += [{"dataset": dataset, "split": split, **row} for row in (*estimates, *points)]
        replicates |= {f"{dataset}/{split}/{name}": values for name, values in _stored(kept).items()}
        n_answers += len(joined.answers)
        n_pairs += 0 if isinstance(joined.pairs, str) else len(joined.pairs)
    _write(out, spec, rows, replicates)
    undefined = sum(row["estimate"] is None for row in rows)
    return (
        f"{_main_results(rows, spec.thresholds_from.partition('/')[0])}; read {n_answers} answers and {n_pairs} donor"
        f" pairs, wrote {len(rows)} estimates ({undefined} undefined)"
    )


def _write(out: Path, spec: ComputeMetricsSpec, rows: Sequence[dict], replicates: Mapping[str, np.ndarray]) -> None:
    run = {"study": spec.study, **spec.run}
    write_table(out / "metrics.parquet", from_rows([{**run, **row} for row in rows], METRICS), METRICS)
    write_tensors(out / "replicates.safetensors", replicates, run)


def _check_predictions(path: Path, spec: ComputeMetricsSpec, shards: list[tuple[str, str]]) -> None:
    table = scan_table(path / "predictions.parquet", (*spec.run, "dataset", "split"))
    distinct = table.unique().collect(engine="streaming")
    for key, expected in spec.run.items():
        if other := [value for value in distinct[key].unique().to_list() if value != expected]:
            raise ArtifactError(f"{path}: has predictions of {key} {other[0]!r}. Expected only {expected!r}.")
    if extra := sorted(set(distinct.select("dataset", "split").iter_rows()) - set(shards)):
        raise ArtifactError(
            f"{path}: has predictions of {'/'.join(extra[0])}, which the spec does not evaluate. "
            f"Expected: {', '.join('/'.join(shard) for shard in shards)}."
        )


def _chooser(spec: ComputeMetricsSpec, found: Mapping[tuple[str, str], CellColumns]) -> CellColumns:
    for shard, cell in found.items():
        if "/".join(shard) == spec.thresholds_from:
            return cell
    known = ", ".join("/".join(shard) for shard in found)
    raise ArtifactError(f"thresholds_from: {spec.thresholds_from} is not evaluated. Expected one of: {known}.")


def _stored(kept: Kept) -> dict[str, np.ndarray]:
    found = {name: kept.replicates[name] for name in STORED}
    for name, of_pairs in kept.pairs.items():
        found |= {name: of_pairs.values, PAIR_IMAGES: np.stack([of_pairs.source, of_pairs.donor])}
    return found


def _main_results(rows: Sequence[Mapping[str, Any]], dataset: str) -> str:
    """Return the results on a data set's test split in words, for those who watch a study grow."""
    at = {"dataset": dataset, "split": "test", "subset": "all"}
    of = {row["metric"]: row for row in rows if all(row[key] == value for key, value in at.items())}
    words = []
    for metric, name in (("auroc", "AUROC"), ("brier", "Brier score"), ("natural_ccg_auc", "Natural CCG-AUC")):
        row = of.get(metric)
        if row is None or row["estimate"] is None:
            words.append(f"{name} undefined")
        else:
            interval = "" if row["low"] is None else f" [{row['low']:.3f}, {row['high']:.3f}]"
            words.append(f"{name} {row['estimate']:.3f}{interval}")
    return f"{dataset}/test: {', '.join(words)}"

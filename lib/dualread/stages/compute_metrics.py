"""Stage compute_metrics: every metric of one method of one actor. Labels meet confidences here and nowhere else.

spec:    {"study", "backbone", "actor", "seed", "method", "bootstrap": {"replicates"},
          "datasets": {name: {"splits": [...]}}}
inputs:  predictions; manifest/<dataset>/<split>; graded/<dataset>/<split>/<condition>;
         pairs/<dataset>/<split> where the data set admits donors
output:  metrics.parquet
         replicates.safetensors, float64 [B] at <dataset>/<split>/<metric>: the metric on all questions in every image
         resample, NaN where it is undefined; the same resamples for every method of the study
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.artifacts.schemas.manifest import MANIFEST
from dualread.artifacts.schemas.metrics import METRICS
from dualread.artifacts.schemas.predictions import PREDICTIONS
from dualread.artifacts.tables import from_rows, write_table
from dualread.artifacts.tensors import write_tensors
from dualread.errors import ArtifactError
from dualread.evaluation.estimates import estimate
from dualread.evaluation.families import family_rows
from dualread.stages._evaluated import evaluated, read
from dualread.stats.bootstrap import ImageDraws

_RUN = ("backbone", "actor", "seed", "method")


def compute(spec: Mapping, inputs: Mapping[str, Path], out: Path) -> str:
    """Read the inputs, write metrics.parquet and replicates.safetensors, and return one line about it.

    Raises:
        ArtifactError: An input is missing, or predictions, grades, manifest and pairs do not fit together.
    """
    predictions = read(inputs, "predictions", PREDICTIONS)
    _check_run(predictions, spec, inputs["predictions"])
    shards = [(name, split) for name, entry in spec["datasets"].items() for split in entry["splits"]]
    _check_shards(predictions, shards, inputs["predictions"])
    rows, replicates, n_answers, n_pairs = [], {}, 0, 0
    for dataset, split in shards:
        manifest = read(inputs, f"manifest/{dataset}/{split}", MANIFEST)
        joined = evaluated(dataset, split, manifest, predictions, inputs)
        draws = ImageDraws(
            names=(spec["study"], dataset, split),
            image_ids=tuple(sorted(manifest["image_id"].unique())),
            replicates=spec["bootstrap"]["replicates"],
        )
        run = {"study": spec["study"], **{key: spec[key] for key in _RUN}, "dataset": dataset, "split": split}
        estimates, kept = estimate(joined, draws)
        rows += [{**run, **row} for row in (*estimates, *family_rows(joined.answers, manifest))]
        replicates |= {f"{dataset}/{split}/{metric}": values for metric, values in kept.items()}
        n_answers += len(joined.answers)
        n_pairs += 0 if isinstance(joined.pairs, str) else len(joined.pairs)
    write_table(out / "metrics.parquet", from_rows(rows, METRICS), METRICS)
    write_tensors(out / "replicates.safetensors", replicates, {key: spec[key] for key in ("study", *_RUN)})
    undefined = sum(row["estimate"] is None for row in rows)
    return f"read {n_answers} answers and {n_pairs} donor pairs, wrote {len(rows)} estimates ({undefined} undefined)"


def _check_run(predictions: pl.DataFrame, spec: Mapping, path: Path) -> None:
    for key in _RUN:
        if other := [value for value in predictions[key].unique().to_list() if value != spec[key]]:
            raise ArtifactError(f"{path}: predictions of {key} {other[0]!r}, expected {spec[key]!r} only.")


def _check_shards(predictions: pl.DataFrame, shards: list[tuple[str, str]], path: Path) -> None:
    if extra := sorted(set(predictions.select("dataset", "split").iter_rows()) - set(shards)):
        raise ArtifactError(
            f"{path}: predictions of {'/'.join(extra[0])}, which the spec does not evaluate; "
            f"expected: {', '.join('/'.join(shard) for shard in shards)}."
        )

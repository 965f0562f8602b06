"""Stage measure_difficulty: what the methods know of the true difficulty of phantom images, which no model sees.

inputs:  truth, the phantom hospital of the data set; manifest;
         graded/<backbone>/<actor>/<seed>/<dataset>/<split>/original;
         predictions/<backbone>/<actor>/<seed>/<method>
output:  difficulty.parquet
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from dualread.artifacts.tables import from_rows, reason_of, write_table
from dualread.errors import ArtifactError
from dualread.evaluation.difficulty import RunAnswers, controls
from dualread.evaluation.statistics.bootstrap import ClusterDraws
from dualread.schema.columns import DIFFICULTY, GRADED, MANIFEST, PREDICTIONS, TRUTH
from dualread.schema.metrics import MeasureDifficultySpec
from dualread.stages._joined import read


def compute(spec: MeasureDifficultySpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Read the inputs, write difficulty.parquet, and return one line about it."""
    manifest = read(inputs, "manifest", MANIFEST, ("sample_id", "question_key", "image_id"))
    truth = read(inputs, "truth", TRUTH)
    questions = manifest.join(truth, on="image_id", how="left", validate="m:1").sort("sample_id")
    if unknown := questions.filter(pl.col("haze").is_null())["image_id"].unique().sort().to_list():
        raise ArtifactError(f"{inputs['truth']}: says nothing about {unknown[0]}. Expected a row for every image.")
    draws = ClusterDraws(
        names=(spec.study, spec.dataset, spec.split),
        cluster_ids=tuple(sorted(manifest["image_id"].unique())),
        replicates=spec.replicates,
    )
    of_study = {"study": spec.study, "actor": spec.actor, "dataset": spec.dataset}
    rows = []
    for backbone, seeds in spec.seeds.items():
        runs = [_run(spec, questions, inputs, backbone, seed) for seed in seeds]
        rows += [{**of_study, "backbone": backbone, **row} for row in controls(runs, spec.nulls, draws)]
    write_table(out / "difficulty.parquet", from_rows(rows, DIFFICULTY), DIFFICULTY)
    n_hazy = truth.join(manifest.select("image_id").unique(), on="image_id").filter(pl.col("haze") > 0).height
    return f"read {len(draws.cluster_ids)} images, {n_hazy} of them hazy, wrote {len(rows)} estimates"


def _run(
    spec: MeasureDifficultySpec, questions: pl.DataFrame, inputs: Mapping[str, Path], backbone: str, seed: int
) -> RunAnswers:
    run = f"{backbone}/{spec.actor}/{seed}"
    shard = f"graded/{run}/{spec.dataset}/{spec.split}/original"
    graded = read(inputs, shard, GRADED, ("sample_id", "canonical_answer", "correct"))
    answers = questions.join(graded, on="sample_id", how="left", validate="1:1", maintain_order="left")
    _refuse_missing(answers, "correct", shard)
    return RunAnswers(
        seed=seed,
        image_ids=answers["image_id"].to_list(),
        questions=answers["question_key"].to_list(),
        answers=answers["canonical_answer"].to_list(),
        correct=answers["correct"].to_numpy(),
        haze=answers["haze"].to_numpy(),
        confidences={
            method: _confidence(spec, questions, inputs, f"predictions/{run}/{method}") for method in spec.methods
        },
    )


def _confidence(
    spec: MeasureDifficultySpec, questions: pl.DataFrame, inputs: Mapping[str, Path], name: str
) -> np.ndarray | str:
    if name in inputs and (reason := reason_of(inputs[name] / "predictions.parquet")):
        return reason
    predictions = read(inputs, name, PREDICTIONS, ("sample_id", "dataset", "split", "condition", "confidence"))
    shard = predictions.filter(dataset=spec.dataset, split=spec.split, condition="original")
    rows = questions.join(shard, on="sample_id", how="left", validate="1:1", maintain_order="left")
    _refuse_missing(rows, "confidence", name)
    return rows["confidence"].to_numpy()


def _refuse_missing(answers: pl.DataFrame, column: str, name: str) -> None:
    if missing := answers.filter(pl.col(column).is_null())["sample_id"].to_list():
        raise ArtifactError(
            f"{name}: no {column} of {missing[0]}, and {len(missing)} in all. Make this artifact again."
        )

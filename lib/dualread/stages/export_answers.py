"""Stage export_answers: the answers of one run and what all methods say about them, for `dualread evaluate`.

inputs:  predictions/<backbone>/<actor>/<seed>/<method>; manifest/<dataset>/<split>;
         graded/<dataset>/<split>/<condition>; pairs/<dataset>/test
output:  answers.parquet, one row per method and test question; validation.parquet, the same of the validation splits;
         pairs.parquet, one row per method and donor pair of the test splits; of claims of reports, a row is one claim,
         and the pairs have its confidence where the report is forced on the donor's image
From these tables `dualread evaluate` computes the study's own estimates and intervals, because the columns study,
dataset, split and replicates name the resamples. A method without confidences is not in them. A table that would have
no rows is not written, unless all have none.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from dualread.artifacts.tables import reason_of, scan_table
from dualread.evaluation.side_by_side import FIXED_PREFIX, LENT, LENT_BY, clusters_for_images
from dualread.schema.columns import GRADED, MANIFEST, PAIRS, PREDICTIONS
from dualread.schema.metrics import ExportAnswersSpec
from dualread.stages._joined import read, read_groups

_ORIGINAL, _DONOR = "original", "donor"
_OF_MANIFEST = (
    *("dataset", "split", "sample_id", "image_id", "cluster_id", "question", "answer_type", "reference_answers"),
)


def compute(spec: ExportAnswersSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Read the inputs, write the tables, and return one line about them."""
    shards = [(name, split) for name, splits in spec.splits.items() for split in splits]
    tables, left_out = {}, []
    for method in spec.methods:
        table = inputs[f"predictions/{spec.backbone}/{spec.actor}/{spec.seed}/{method}"] / "predictions.parquet"
        if reason_of(table) is None:
            tables[method] = table
        else:
            left_out.append(method)
    parts_of: dict[str, list[pl.DataFrame]] = {"answers": [], "validation": [], "pairs": []}
    for shard in shards:
        answers = _answers(spec, shard, tables, inputs)
        parts_of["answers" if shard[1] == "test" else "validation"].append(answers)
        if shard[1] == "test" and f"pairs/{'/'.join(shard)}" in inputs:
            parts_of["pairs"].append(_pairs(spec, shard, tables, inputs))
    merged = {name: pl.concat(parts) for name, parts in parts_of.items() if parts}
    if "pairs" in merged and not merged["pairs"][LENT_BY].str.starts_with(LENT).any():  # as the images say
        merged["pairs"] = merged["pairs"].drop(LENT_BY)
    written = {name: table for name, table in merged.items() if len(table)} or dict(list(merged.items())[:1])
    for name, table in written.items():
        table.write_parquet(out / f"{name}.parquet", compression="zstd")
    counts = ", ".join(f"{len(table)} rows of {name}" for name, table in written.items())
    return f"wrote {counts}" + (f"; without confidences: {', '.join(left_out)}" if left_out else "")


def _answers(
    spec: ExportAnswersSpec, shard: tuple[str, str], tables: Mapping[str, Path], inputs: Mapping[str, Path]
) -> pl.DataFrame:
    place = "/".join(shard)
    columns = [name for name in spec.subgroups or () if name not in _OF_MANIFEST]
    questions = read(inputs, f"manifest/{place}", MANIFEST, _OF_MANIFEST)
    groups = read_groups(inputs, f"manifest/{place}", columns)
    grades = read(inputs, f"graded/{place}/{_ORIGINAL}", GRADED, ("sample_id", "answer", "correct"))
    return (
        _confidences(shard, _ORIGINAL, tables)
        .join(questions, on="sample_id", how="left", validate="m:1")
        .join(groups, on="sample_id", how="left", validate="m:1")
        .join(grades, on="sample_id", how="left", validate="m:1")
        .select(
            *("method", pl.lit(spec.study).alias("study"), pl.lit(spec.replicates).alias("replicates")),
            *("dataset", "split", "sample_id", "image_id", "cluster_id", "question", "answer_type", "answer"),
            pl.col("reference_answers").alias("reference_answer"),
            *("correct", *_said(spec), *columns),
        )
        .sort("method", "sample_id")
    )


def _said(spec: ExportAnswersSpec) -> list[pl.Expr]:
    """Return the column of confidences; where some methods have none, they have null there, and theirs are scores."""
    is_score = pl.col("method").is_in(spec.uncalibrated or ())
    if not spec.uncalibrated:
        return [pl.col("confidence")]
    return [pl.when(~is_score).then("confidence").alias("confidence"), pl.when(is_score).then("score").alias("score")]


def _pairs(
    spec: ExportAnswersSpec, shard: tuple[str, str], tables: Mapping[str, Path], inputs: Mapping[str, Path]
) -> pl.DataFrame:
    place = "/".join(shard)
    pairs = read(inputs, f"pairs/{place}", PAIRS, ("sample_id", "source_image_id", "donor_image_id"))
    clusters = clusters_for_images(read(inputs, f"manifest/{place}", MANIFEST, ("image_id", "cluster_id")))
    pairs = pairs.with_columns(clusters(pairs)[LENT_BY])
    condition = _DONOR if f"graded/{place}/{_DONOR}" in inputs else FIXED_PREFIX  # claims are forced alone
    grades = read(inputs, f"graded/{place}/{condition}", GRADED, ("sample_id", "answer", "correct"))
    dataset, split = (pl.lit(value).alias(name) for name, value in zip(("dataset", "split"), shard, strict=True))
    return (
        _confidences(shard, condition, tables)
        .join(pairs, on="sample_id", how="left", validate="m:1")
        .join(grades, on="sample_id", how="left", validate="m:1")
        .select(
            *("method", pl.lit(spec.study).alias("study"), dataset, split, "sample_id", "donor_image_id", LENT_BY),
            pl.col("answer").alias("donor_answer"),
            pl.col("correct").alias("donor_correct"),
            *(value.name.prefix("donor_") for value in _said(spec)),
        )
        .sort("method", "sample_id")
    )


def _confidences(shard: tuple[str, str], condition: str, tables: Mapping[str, Path]) -> pl.DataFrame:
    at = dict(zip(("dataset", "split"), shard, strict=True))
    names = ("method", "sample_id", "confidence", "score")
    rows: Sequence[pl.LazyFrame] = [scan_table(table, names, **at, condition=condition) for table in tables.values()]
    if not rows:
        return pl.DataFrame(schema={name: PREDICTIONS.columns[name].dtype for name in names})
    return pl.concat(rows).collect(engine="streaming")

"""Join one method's confidences on one (data set, split) with the grades that are inputs of a stage."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import polars as pl

from dualread.artifacts.tables import empty_table, read_table, scan_table
from dualread.data.questions.roles import OF_UNIT, unit_of
from dualread.errors import ArtifactError
from dualread.evaluation.columns import Columns
from dualread.evaluation.conditions import changed_row
from dualread.evaluation.controls import report_counts, report_pairs
from dualread.evaluation.join import FORCED_ALONE, NOT_FORCED, Joined, Rows, join
from dualread.evaluation.pair_metrics import PairValues
from dualread.evaluation.side_by_side import ORIGINAL, clusters_for_images
from dualread.grading.claim_labels.base import question_of
from dualread.schema.columns import CLAIMS, GRADED, MANIFEST, PAIRS, QUESTION_COLUMNS, Schema
from dualread.schema.tables import Shown

S = TypeVar("S", bound=Shown)
# Tables that all methods of an actor share, by name.
_SHARED = {schema.name: schema for schema in (GRADED, MANIFEST, PAIRS)}
# Those of more bytes, 200,000 rows or so, are not kept in the memory but read again for each method.
_MOST_KEPT = 2**20
# The columns that a join uses.
_OF_PREDICTIONS = ("sample_id", "confidence", "imputed")
_OF_ANSWERS = ("sample_id", "image_id", "canonical_answer")
_OF_GRADED = ("sample_id", "image_id", "canonical_answer", "correct")
_OF_PAIRS = ("sample_id", "source_image_id", "donor_image_id")


def read_joined(
    dataset: str,
    split: str,
    manifest: pl.DataFrame,
    predictions: Path,
    inputs: Mapping[str, Path],
    *,
    run: str = "",
    conditions: Collection[str] = (),
) -> Joined:
    """Read the grades of a (data set, split), and the pairs if they are an input, and join the predictions with them.

    Inputs: graded/<run><dataset>/<split>/<condition>, pairs/<dataset>/<split> where there are donors, and
    questions/<dataset>/<split> where what is judged are claims. `run` is "<backbone>/<actor>/<seed>/" where the inputs
    belong to several runs. Predictions of other data sets and splits are not read, nor of other `conditions` if there
    are some.
    """
    if manifest.is_empty():
        raise ArtifactError(
            f"{dataset}/{split}: there is nothing to judge: no claim of its reports has a label. Fill in the column"
            " `label` of claims.parquet, beside the grades, and name the table as the `path` of the labels"
            " (docs/reports.md)."
        )
    prefix = f"graded/{run}{dataset}/{split}/"
    table, rows = predictions / "predictions.parquet", {"dataset": dataset, "split": split}
    names = scan_table(table, ("condition",), **rows).unique().collect(engine="streaming")["condition"].sort()
    joined = join(
        where=f"{run}{dataset}/{split}",
        manifest=manifest,
        pairs=read(inputs, name, PAIRS, _OF_PAIRS) if (name := f"pairs/{dataset}/{split}") in inputs else None,
        predictions={
            name: scan_table(table, _OF_PREDICTIONS, **rows, condition=name).collect(engine="streaming")
            for name in names
            if name in conditions or not conditions
        },
        graded={
            name.removeprefix(prefix): read(inputs, name, GRADED, _OF_GRADED)
            for name in inputs
            if name.startswith(prefix)
        },
    )
    if f"questions/{dataset}/{split}" in inputs and isinstance(joined.fixed, str):
        return replace(joined, pairs=FORCED_ALONE, fixed=NOT_FORCED)
    return joined


def changed_rows(data_split: tuple[str, str], manifest: pl.DataFrame, inputs: Mapping[str, Path]) -> list[dict]:
    """Return the row of a (data set, split) that says how many answers changed; none if they are compared with none."""
    name = "/".join((*data_split, "original"))
    if f"compared/{name}" not in inputs:
        return []
    answers, others = (read(inputs, f"{kind}/{name}", GRADED, _OF_ANSWERS) for kind in ("graded", "compared"))
    clusters = dict(manifest.select("image_id", "cluster_id").unique().iter_rows())
    return [changed_row(answers, others, clusters, "/".join(data_split))]


def forced_pairs(
    data_split: tuple[str, str], fixed: Rows, questions: pl.DataFrame, inputs: Mapping[str, Path]
) -> dict[str, PairValues]:
    """Return the forced claims of a (data set, split) as `controls.report_pairs` does; nothing of answers.

    Input: asked_pairs/<dataset>/<split>, where reports are forced on donors. `questions` are those of the manifest.
    """
    if (name := f"asked_pairs/{'/'.join(data_split)}") not in inputs or isinstance(fixed, str):
        return {}
    asked = clusters_for_images(questions)(read(inputs, name, PAIRS, _OF_PAIRS))
    return report_pairs(Columns.of(fixed), fixed.select(question_of(pl.col("sample_id")))["sample_id"], asked)


def with_units(shown: S, inputs: Mapping[str, Path], labels: Mapping[str, str]) -> S:
    """Return what is shown with what is resampled of each data set of the manifests among the inputs, by its label."""
    names = [name for name in sorted(inputs) if name.startswith("manifest/")]
    units = {name.split("/")[1]: unit_of(read(inputs, name, MANIFEST, OF_UNIT)) for name in names}
    return shown.model_copy(update={"units": {labels[name]: units[name] for name in labels if name in units}})


def counted(data_split: tuple[str, str], inputs: Mapping[str, Path]) -> list[dict]:
    """Return how many claims the reports of a (data set, split) have, and how many have no label; none of answers."""
    name = f"questions/{'/'.join(data_split)}"
    if name not in inputs:
        return []
    questions = read(inputs, name, MANIFEST, ("sample_id", "cluster_id"))
    claims = read(inputs, f"graded/{'/'.join(data_split)}/{ORIGINAL}", CLAIMS, ("sample_index", "question", "label"))
    return report_counts(claims.filter(sample_index=0), questions)


def read_groups(inputs: Mapping[str, Path], manifest: str, columns: Collection[str]) -> pl.DataFrame:
    """Return sample_id and these columns of the questions of the input `manifest`; null where they have none."""
    of_manifest = [name for name in columns if name in MANIFEST.columns]
    questions = read(inputs, manifest, MANIFEST, ("sample_id", *of_manifest))
    further = inputs[manifest] / f"{QUESTION_COLUMNS.name}.parquet"
    values = read_table(further, QUESTION_COLUMNS) if further.exists() else empty_table(QUESTION_COLUMNS)
    for name in (name for name in columns if name not in of_manifest):
        of_column = values.filter(column=name).select("sample_id", pl.col("value").alias(name))
        questions = questions.join(of_column, on="sample_id", how="left", validate="1:1", maintain_order="left")
    return questions


def grouped_by(inputs: Mapping[str, Path], manifest: str, columns: Collection[str]) -> dict[str, pl.DataFrame]:
    """Return sample_id and group of every question, by column, of those of `columns` that have a value."""
    groups = read_groups(inputs, manifest, columns)
    return {by: groups.select("sample_id", group=by) for by in columns if not groups[by].is_null().all()}


def read(inputs: Mapping[str, Path], name: str, schema: Schema, columns: tuple[str, ...] = ()) -> pl.DataFrame:
    """Read the table of `schema` in the input called `name`; only these columns if there are any."""
    if name not in inputs:
        raise ArtifactError(f"no input {name!r}. Given: {', '.join(sorted(inputs))}. Add it to the inputs of the job.")
    path = inputs[name] / f"{schema.name}.parquet"
    if schema.name in _SHARED and path.exists() and path.stat().st_size <= _MOST_KEPT:
        return _read_once(path, path.stat().st_mtime_ns, schema.name, columns)
    return read_table(path, schema, columns)


# One process evaluates all methods of an actor on the same tables, one after the other.
@lru_cache(maxsize=256)
def _read_once(path: Path, modified_ns: int, schema: str, columns: tuple[str, ...]) -> pl.DataFrame:
    """Read a table, unless this version of the file was read before."""
    return read_table(path, _SHARED[schema], columns)

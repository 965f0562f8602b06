"""Stage grade: completions of one shard -> answers, stated confidences and labels.

Inputs: `generations`, `manifest`; `pairs` where a donor's image is shown, for which the donor's gold answers count.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from dualread.artifacts.tables import from_many_rows, read_parts, read_table, write_table
from dualread.declared.answers import GradeSpec
from dualread.declared.columns import GENERATIONS, GRADED, MANIFEST, PAIRS
from dualread.errors import ArtifactError
from dualread.grading.answers import graded_answer
from dualread.grading.canonical import is_correct
from dualread.models.conditions import forced, shown

_OF_COMPLETIONS = ("sample_id", "condition", "sample_index", "image_id", "text")


def compute(spec: GradeSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write graded.parquet, sorted by sample_id and sample_index."""
    where = f"{spec.dataset}/{spec.split}/{spec.condition}"
    generations = read_parts(inputs["generations"], GENERATIONS, _OF_COMPLETIONS)
    manifest = read_table(inputs["manifest"] / "manifest.parquet", MANIFEST)
    pairs = read_table(inputs["pairs"] / "pairs.parquet", PAIRS) if "pairs" in inputs else None
    gold = gold_answers(manifest, spec.image, pairs)
    if spec.completions is not None:
        images = dict(gold.select("sample_id", "image_id").iter_rows())
        generations = forced(generations, images, spec.condition)
    check_coverage(generations, gold, spec.condition, where=where)
    references = dict(zip(gold["sample_id"], gold["reference_answers"].to_list(), strict=True))
    rows = (graded_row(row, references[row["sample_id"]], spec.contract) for row in generations.iter_rows(named=True))
    graded = from_many_rows(rows, GRADED).sort("sample_id", "sample_index")
    write_table(out / "graded.parquet", graded, GRADED)
    valid, correct = (graded["parse_status"] == "valid").mean(), graded["correct"].mean()
    shares = f": {valid:.1%} valid, {correct:.1%} correct" if len(graded) else ""
    return f"read {len(generations)} completions, wrote {len(graded)} graded completions{shares}"


def gold_answers(manifest: pl.DataFrame, image: str, pairs: pl.DataFrame | None) -> pl.DataFrame:
    """Return sample_id, reference_answers and the image_id that should be shown, one row per question asked."""
    asked = shown(manifest, image, pairs).select("sample_id", "image_id")
    golds = manifest.select("sample_id", "reference_answers")
    if image == "donor":
        assert pairs is not None, "a donor condition needs pairs"
        donors = golds.rename({"sample_id": "donor_sample_id"})
        golds = pairs.select("sample_id", "donor_sample_id").join(donors, on="donor_sample_id", validate="m:1")
    return asked.join(golds.select("sample_id", "reference_answers"), on="sample_id", how="left", validate="1:1")


def check_coverage(generations: pl.DataFrame, gold: pl.DataFrame, condition: str, *, where: str) -> None:
    """Check that a shard has exactly the expected questions, each with the image of its gold answer.

    Raises:
        ArtifactError: It has not; the message counts the wrong rows and names some.
    """
    told = generations.join(gold.rename({"image_id": "expected"}), on="sample_id", how="left")
    problems = {
        "questions without a completion": gold.join(generations, on="sample_id", how="anti"),
        "completions of unknown questions": generations.join(gold, on="sample_id", how="anti"),
        "completions of another image than the gold answer's": told.filter(pl.col("image_id") != pl.col("expected")),
        f"completions of another condition than {condition}": generations.filter(pl.col("condition") != condition),
    }
    for problem, rows in problems.items():
        if len(rows):
            shown = ", ".join(rows["sample_id"].unique().sort()[:5])
            raise ArtifactError(f"{where}: {len(rows)} {problem}, such as {shown}. Generate the shard again.")


def graded_row(row: Mapping[str, Any], references: list[str], contract: str) -> dict[str, Any]:
    """Return the graded row of one completion."""
    graded = graded_answer(row["text"], contract)
    return {
        **{name: row[name] for name in ("sample_id", "condition", "sample_index", "image_id")},
        **graded,
        "correct": is_correct(graded["answer"], references),
    }

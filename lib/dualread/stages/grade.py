"""Stage grade: completions of one shard -> answers, stated confidences and labels.

Inputs: `generations`, `manifest`; `pairs` where a donor's image is shown. The reference answers of the image that is
shown count, as its image change says. Of reports, each claim is graded (`_claims.write_grades`).
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from dualread import plugins
from dualread.artifacts.tables import from_many_rows, read_parts, read_table, write_table
from dualread.errors import ArtifactError
from dualread.grading.answers import graded_answer
from dualread.grading.canonical import is_correct
from dualread.grading.parse import Parsed
from dualread.models.images.base import rows_shown
from dualread.schema.answers import GradeSpec
from dualread.schema.columns import GENERATIONS, GRADED, MANIFEST, PAIRS
from dualread.stages._asked import forced
from dualread.stages._claims import write_grades

_COLUMNS = ("sample_id", "condition", "sample_index", "image_id", "text")


def compute(spec: GradeSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write graded.parquet, sorted by sample_id and sample_index; of reports, claims.parquet with all claims, too."""
    where = f"{spec.dataset}/{spec.split}/{spec.condition}"
    generations = read_parts(inputs["generations"], GENERATIONS, _COLUMNS)
    manifest = read_table(inputs["manifest"] / "manifest.parquet", MANIFEST)
    pairs = read_table(inputs["pairs"] / "pairs.parquet", PAIRS) if "pairs" in inputs else None
    gold = rows_shown(manifest, [spec.image], pairs).select("sample_id", "image_id", "reference_answers")
    if spec.completions is not None:
        images = dict(gold.select("sample_id", "image_id").iter_rows())
        generations = forced(generations, images, spec.condition)
    check_coverage(generations, gold, spec.condition, where=where)
    references = dict(zip(gold["sample_id"], gold["reference_answers"].to_list(), strict=True))
    parse = plugins.load_module(spec.contract.module).parse
    if spec.claims is not None:
        return write_grades(spec.claims, generations, references, parse, inputs, out, where)
    rows = (graded_row(row, references[row["sample_id"]], parse) for row in generations.iter_rows(named=True))
    graded = from_many_rows(rows, GRADED).sort("sample_id", "sample_index")
    write_table(out / "graded.parquet", graded, GRADED)
    valid, correct = (graded["parse_status"] == "valid").mean(), graded["correct"].mean()
    shares = f": {valid:.1%} valid, {correct:.1%} correct" if len(graded) else ""
    return f"read {len(generations)} completions, wrote {len(graded)} graded completions{shares}"


def check_coverage(generations: pl.DataFrame, gold: pl.DataFrame, condition: str, *, where: str) -> None:
    """Refuse a shard that has not exactly the expected questions, each with the image of its gold answer."""
    joined = generations.join(gold.rename({"image_id": "expected"}), on="sample_id", how="left")
    problems = {
        "questions without a completion": gold.join(generations, on="sample_id", how="anti"),
        "completions of unknown questions": generations.join(gold, on="sample_id", how="anti"),
        "completions of another image than the gold answer's": joined.filter(pl.col("image_id") != pl.col("expected")),
        f"completions of another condition than {condition}": generations.filter(pl.col("condition") != condition),
    }
    for problem, rows in problems.items():
        if len(rows):
            shown = ", ".join(rows["sample_id"].unique().sort()[:5])
            raise ArtifactError(f"{where}: {len(rows)} {problem}, such as {shown}. Generate the shard again.")


def graded_row(row: Mapping[str, Any], references: list[str], parse: Callable[[str], Parsed]) -> dict[str, Any]:
    """Return the graded row of one completion."""
    graded = graded_answer(parse(row["text"]))
    return {
        **{name: row[name] for name in ("sample_id", "condition", "sample_index", "image_id")},
        **graded,
        "correct": is_correct(graded["answer"], references),
    }

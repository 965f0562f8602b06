"""Stage list_claims: the labeled claims of a run's reports on one split, as the table of what is judged, and its pairs.

Inputs: `manifest`; `graded`, the grades of the reports on the original images; where a study has them, `pairs`, and
`graded/donor_fixed_prefix`, the grades of the same reports forced on the donors' images.

All that reads answers joins them with these tables in the place of those of the questions. A claim has its question's
columns: role, image, cluster, reference answers. `image_files` are in the manifest of the questions.
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.artifacts.tables import empty_table, read_table, write_table
from dualread.evaluation.side_by_side import FIXED_PREFIX
from dualread.schema.columns import CLAIMS, GRADED, MANIFEST, PAIRS, QUESTION_COLUMNS
from dualread.schema.data import ListClaimsSpec


def compute(spec: ListClaimsSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write manifest.parquet, one row per labeled claim, and pairs.parquet, of those with a label on both images."""
    questions = read_table(inputs["manifest"] / "manifest.parquet", MANIFEST)
    claims = read_table(inputs["graded"] / "claims.parquet", CLAIMS)
    manifest = _of_claims(inputs["graded"], questions)
    pairs = empty_table(PAIRS)
    if forced := inputs.get(f"graded/{FIXED_PREFIX}"):
        pairs = _of_claims(forced, read_table(inputs["pairs"] / "pairs.parquet", PAIRS))
    write_table(out / "manifest.parquet", manifest, MANIFEST)
    if (further := inputs["manifest"] / "question_columns.parquet").exists():
        columns = read_table(further, QUESTION_COLUMNS).partition_by("column", maintain_order=True)
        of_claims = pl.concat([_of_claims(inputs["graded"], of_column) for of_column in columns])
        write_table(out / "question_columns.parquet", of_claims, QUESTION_COLUMNS)
    write_table(out / "pairs.parquet", pairs, PAIRS)
    n_reports = claims["question"].n_unique()
    return f"read {len(claims)} claims of {n_reports} reports, listed {len(manifest)} and {len(pairs)} pairs"


def _of_claims(graded: Path, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the row of its question for each graded claim, under the claim's own id, sorted by it."""
    key = ["sample_id", "sample_index"]
    asked = read_table(graded / "claims.parquet", CLAIMS, (*key, "question")).rename({"question": "asked"})
    claims = read_table(graded / "graded.parquet", GRADED, key).filter(sample_index=0).sort("sample_id")
    claims = claims.join(asked, on=key, how="left", validate="1:1", maintain_order="left")
    rows = rows.rename({"sample_id": "asked"})
    return claims.join(rows, on="asked", how="left", validate="m:1", maintain_order="left")

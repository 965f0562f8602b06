"""Stage compare_with_paper: compare every cell that the paper prints with the study, and the paper with itself.

inputs:  for each table that the paper also has, the build_table artifact under the table's name
output:  paper_comparison.csv (columns: `dualread.reporting.comparison`), paper_comparison.md
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.reporting.comparison import compare, page
from dualread.schema.metrics import CompareWithPaperSpec


def compute(spec: CompareWithPaperSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Read the tables, write both files, and return one line about them."""
    tables = {name: pl.read_csv(folder / f"{name}.csv", infer_schema=False) for name, folder in sorted(inputs.items())}
    cells = compare(tables, spec)
    cells.write_csv(out / "paper_comparison.csv")
    (out / "paper_comparison.md").write_text(page(cells, spec.study), encoding="utf-8")
    counts = dict(cells["verdict"].value_counts(sort=True).iter_rows())
    return f"read {len(tables)} tables, compared {len(cells)} cells: " + ", ".join(
        f"{n} {name}" for name, n in counts.items()
    )

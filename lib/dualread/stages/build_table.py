"""Stage build_table: one table of the paper as LaTeX, and a CSV with the full precision behind every printed cell.

spec:    {"table": {"module": "tables.<name>"}, "layout": {...}} (see `dualread.tables._layout`)
inputs:  the one artifact that the table READS: metrics of collect_metrics, contrasts of compare_methods, ...
output:  <name>.tex, <name>.csv
"""

from collections.abc import Mapping
from pathlib import Path

from dualread.artifacts.schemas import all_schemas
from dualread.artifacts.tables import read_table
from dualread.plugins import load


def compute(spec: Mapping, inputs: Mapping[str, Path], out: Path) -> str:
    """Read the artifact, write the table, and return one line about it.

    Raises:
        ConfigError: There is no such table, or its layout is malformed.
        ArtifactError: The artifact is damaged, or contradicts itself.
    """
    family, name = spec["table"]["module"].split(".")
    ((reads, folder),) = inputs.items()
    rows = read_table(folder / f"{reads}.parquet", all_schemas()[reads])
    table = load(family, name).build(rows, spec["layout"])
    (out / f"{name}.tex").write_text(table.tex, encoding="utf-8")
    table.cells.write_csv(out / f"{name}.csv")
    undefined = table.cells["mean"].null_count()
    return f"read {len(rows)} rows of {reads}, wrote {name}.tex with {len(table.cells)} cells ({undefined} undefined)"

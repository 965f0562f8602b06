"""Stage build_table: one table of the paper as LaTeX, and a CSV with the full precision behind every printed cell.

spec:    {"table": {"module": "tables.<name>"}, "layout": {...}} (see `dualread.tables._layout`)
inputs:  metrics, a collect_metrics artifact
output:  <name>.tex, <name>.csv
"""

from collections.abc import Mapping
from pathlib import Path

from dualread.artifacts.schemas.metrics import METRICS
from dualread.artifacts.tables import read_table
from dualread.plugins import load


def compute(spec: Mapping, inputs: Mapping[str, Path], out: Path) -> str:
    """Read the metrics, write the table, and return one line about it.

    Raises:
        ConfigError: There is no such table, or its layout is malformed.
        ArtifactError: The metrics contradict each other.
    """
    family, name = spec["table"]["module"].split(".")
    metrics = read_table(inputs["metrics"] / "metrics.parquet", METRICS)
    table = load(family, name).build(metrics, spec["layout"])
    (out / f"{name}.tex").write_text(table.tex, encoding="utf-8")
    table.cells.write_csv(out / f"{name}.csv")
    undefined = table.cells["mean"].null_count()
    return f"read {len(metrics)} estimates, wrote {name}.tex with {len(table.cells)} cells ({undefined} undefined)"

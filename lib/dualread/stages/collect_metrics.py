"""Stage collect_metrics: one sorted table of all methods' metrics, with the means over OOD data sets added.

spec:    {"ood": [data sets of ood6], "ood_ccg": [data sets of ood_ccg]}
inputs:  any names; each a compute_metrics artifact
output:  metrics.parquet
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.artifacts.schemas.metrics import METRICS
from dualread.artifacts.tables import empty_table, read_table, write_table
from dualread.errors import ArtifactError
from dualread.evaluation.aggregates import KEYS, aggregate


def compute(spec: Mapping, inputs: Mapping[str, Path], out: Path) -> str:
    """Read all metrics tables, write metrics.parquet, and return one line about it.

    Raises:
        ArtifactError: Two inputs hold the same estimate.
    """
    tables = [read_table(inputs[name] / "metrics.parquet", METRICS) for name in sorted(inputs)]
    estimates = pl.concat([empty_table(METRICS), *tables])
    if not (twice := estimates.filter(pl.struct(KEYS).is_duplicated())).is_empty():
        first = ", ".join(f"{key} {twice[key][0]}" for key in KEYS)
        raise ArtifactError(f"collect_metrics: {len(twice)} rows share their keys, first: {first}. Give each run once.")
    aggregates = aggregate(estimates, ood=spec["ood"], ood_ccg=spec["ood_ccg"])
    write_table(out / "metrics.parquet", pl.concat([estimates, aggregates]).sort(KEYS), METRICS)
    return f"read {len(inputs)} tables with {len(estimates)} estimates, added {len(aggregates)} means over data sets"

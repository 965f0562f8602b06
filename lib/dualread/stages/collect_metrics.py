"""Stage collect_metrics: one sorted table of all methods' metrics and costs, with the means over OOD data sets added.

inputs:  costs/...: measure_costs artifacts; any other name: a compute_metrics artifact
output:  metrics.parquet
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.artifacts.tables import empty_table, read_table, write_table
from dualread.errors import ArtifactError
from dualread.evaluation.aggregates import KEYS, aggregate
from dualread.evaluation.costs import as_metrics
from dualread.schema.columns import COSTS, METRICS
from dualread.schema.metrics import CollectMetricsSpec


def compute(spec: CollectMetricsSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Read all tables, write metrics.parquet, and return one line about it."""
    measured = [name for name in sorted(inputs) if name.startswith("costs/")]
    computed = [name for name in sorted(inputs) if name not in measured]
    metrics = [read_table(inputs[name] / "metrics.parquet", METRICS) for name in computed]
    estimates = pl.concat([empty_table(METRICS), *metrics])
    costs = [read_table(inputs[name] / "costs.parquet", COSTS) for name in measured]
    estimates = pl.concat([estimates, as_metrics(pl.concat([empty_table(COSTS), *costs]), estimates)])
    if not (twice := estimates.filter(pl.struct(KEYS).is_duplicated())).is_empty():
        first = ", ".join(f"{key} {twice[key][0]}" for key in KEYS)
        raise ArtifactError(f"collect_metrics: {len(twice)} rows share their keys, first: {first}. Give each run once.")
    aggregates = aggregate(estimates, ood=spec.ood, ood_ccg=spec.ood_ccg)
    write_table(out / "metrics.parquet", pl.concat([estimates, aggregates]).sort(KEYS), METRICS)
    return f"read {len(inputs)} tables with {len(estimates)} estimates, added {len(aggregates)} means over data sets"

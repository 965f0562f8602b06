"""Stage export_records: the two records behind the numbers that the paper reports, as CSV in full precision.

inputs:  metrics, a collect_metrics artifact
output:  method_domain_seed.csv, ccg_domains.csv (columns: `dualread.evaluation.records`)
"""

from collections.abc import Mapping
from pathlib import Path

from dualread.artifacts.tables import for_spreadsheets, read_table
from dualread.evaluation.records import ccg_domains, method_domain_seed
from dualread.schema.columns import METRICS
from dualread.schema.metrics import ExportRecordsSpec


def compute(spec: ExportRecordsSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Read the metrics, write the two records, and return one line about them."""
    metrics = read_table(inputs["metrics"] / "metrics.parquet", METRICS)
    matrix = method_domain_seed(metrics, spec.domains)
    decomposition = ccg_domains(metrics, spec.ccg_domains)
    for_spreadsheets(matrix).write_csv(out / "method_domain_seed.csv")
    for_spreadsheets(decomposition).write_csv(out / "ccg_domains.csv")
    return (
        f"read {len(metrics)} rows of metrics, wrote {len(matrix)} rows of answers on {len(spec.domains)} domains "
        f"and {len(decomposition)} rows of donor pairs on {len(spec.ccg_domains)}"
    )

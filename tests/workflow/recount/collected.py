"""What no table shows but a reader may look up: estimates of the collected metrics."""

import polars as pl

from tests.workflow.recount import reports
from tests.workflow.recount.cells import differ
from tests.workflow.recount.values import Values

METRICS = rf"within_question_auroc|squared_calibration_error|{reports.METRICS}"


def differences(values: Values) -> list[str]:
    """Return a line for every estimate of a run, a data set and a subset that is wrong."""
    path = values.study.results / "metrics" / "metrics.parquet"
    rows = pl.read_parquet(path).filter(pl.col("metric").str.contains(f"^({METRICS})$"))
    found = []
    for row in rows.iter_rows(named=True):
        run = values.study.runs[row["backbone"], row["method"]][row["seed"]]
        to_be = values.of_run(run, row["dataset"], row["metric"], row["subset"], row["split"])
        if differ(row["estimate"], to_be):
            where = "/".join(str(row[name]) for name in ("backbone", "seed", "dataset", "subset", "method", "metric"))
            found.append(f"metrics {where}: {row['estimate']}, expected {to_be}")
    return sorted(found)

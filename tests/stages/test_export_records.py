import polars as pl

from dualread.artifacts.tables import from_rows, write_table
from dualread.schema.columns import METRICS
from dualread.schema.metrics import ExportRecordsSpec
from dualread.stages import export_records
from tests.evaluation.test_aggregates import row

SPEC = ExportRecordsSpec(domains=("slake", "a"), ccg_domains=("a",))


def export(root, out):
    write_table(
        root / "metrics.parquet",
        from_rows([row("a", "auroc", 1 / 3), row("a", "strict_ccg_auc", None, reason="no decisive pair")], METRICS),
        METRICS,
    )
    out.mkdir()
    return export_records.compute(SPEC, {"metrics": root}, out)


def test_two_files_with_every_digit_and_the_reasons(tmp_path):
    line = export(tmp_path, tmp_path / "out")
    assert line == "read 2 rows of metrics, wrote 1 rows of answers on 2 domains and 1 rows of donor pairs on 1"
    answers = pl.read_csv(tmp_path / "out/method_domain_seed.csv").row(0, named=True)
    assert (answers["domain"], answers["auroc"], answers["accuracy"]) == ("a", 1 / 3, None)
    pairs = pl.read_csv(tmp_path / "out/ccg_domains.csv").row(0, named=True)
    assert pairs["strict_ccg_auc"] is None
    assert pairs["reason"].startswith(
        "natural_ccg_auc: missing; strict_ccg_auc: no decisive pair; decisive_pairs: missi"
    )

import polars as pl

from dualread.artifacts.tables import write_table
from dualread.plugins import declared
from dualread.schema.base import Plugin
from dualread.schema.columns import CONTRASTS, METRICS
from dualread.schema.tables import BuildTableSpec
from dualread.stages import build_table
from tests.reporting.tables import contrasts
from tests.reporting.tables.layouts import TINY, layout, method, metrics, over_seeds


def build(root, module="reporting.tables.main"):
    write_table(root / "metrics.parquet", metrics(*over_seeds("psr", "auroc", [0.1, 0.2, 1 / 3])), METRICS)
    out = root / "out"
    out.mkdir()
    spec = BuildTableSpec(table=Plugin(module=module), layout=layout([method("psr")], TINY))
    line = build_table.compute(spec, {"metrics": root}, out)
    return line, out


def test_latex_and_the_full_precision_behind_it(tmp_path):
    line, out = build(tmp_path)
    assert line == "read 3 rows of metrics, wrote main.tex with 8 cells (7 undefined)"
    assert sorted(path.name for path in out.iterdir()) == ["main.csv", "main.html", "main.tex"]
    row = pl.read_csv(out / "main.csv").filter(pl.col("metric") == "auroc").row(0, named=True)
    assert row["mean"] == (0.1 + 0.2 + 1 / 3) / 3  # every bit survives the file
    assert (row["printed"], row["n_seeds"], row["bold"]) == (".211±.117", 3, True)
    assert "$\\mathbf{.211}_{\\pm.117}$" in (out / "main.tex").read_text(encoding="utf-8")
    assert "<td><b>.211</b><sub>±.117</sub></td>" in (out / "main.html").read_text(encoding="utf-8")


def test_a_table_gets_what_it_reads(tmp_path):
    write_table(tmp_path / "contrasts.parquet", contrasts.table(contrasts.row("psr", "auroc", 0.25)), CONTRASTS)
    (tmp_path / "out").mkdir()
    spec = BuildTableSpec(table=Plugin(module="reporting.tables.intervals"), layout=layout([method("psr")], TINY))
    line = build_table.compute(spec, {"contrasts": tmp_path}, tmp_path / "out")
    assert line == "read 1 rows of contrasts, wrote intervals.tex with 1 cells (0 undefined)"
    assert declared("tables", "intervals", "READS") == "contrasts"
    assert pl.read_csv(tmp_path / "out" / "intervals.csv")["low"][0] == 0.25 - 0.1

import polars as pl

from dualread.reporting.tables import thresholds
from dualread.stages import build_table
from tests.reporting.tables.layouts import TINY, layout, method, metrics, over_seeds
from tests.reporting.tables.reading import body


def test_a_line():
    rows = [
        *over_seeds("psr", "threshold_at_risk_05", [0.8, 0.9, 1.0]),
        *over_seeds("psr", "coverage_at_risk_05", [0.5] * 3),
        *over_seeds("psr", "kept_risk_at_risk_05", [0.07, 0.08, 0.09]),
        *over_seeds("psr", "coverage_at_risk_05", [0.25] * 3, dataset="ood6"),
        *over_seeds("psr", "kept_risk_at_risk_05", [None] * 3, dataset="ood6", reason="pmc: nothing is kept"),
        *over_seeds("psr", "certified_threshold_at_risk_05", [0.9, 0.95, 1.0]),
        *over_seeds("psr", "certified_coverage_at_risk_05", [None] * 3, reason="too few images"),
        *over_seeds("psr", "certified_kept_risk_at_risk_05", [0.04] * 3),
    ]
    table = build_table.build(thresholds, metrics(*rows), layout([method("psr", label="PSR")], TINY))
    upper = [r"$.900_{\pm.100}$", r"$.500_{\pm.000}$", r"$.080_{\pm.010}$", r"$.250_{\pm.000}$", "---"]
    lower = [r"$.950_{\pm.050}$", "---", r"$.040_{\pm.000}$", "---", "---"]
    cells = [rf"\shortstack{{{top}\\[-2pt]{bottom}}}" for top, bottom in zip(upper, lower, strict=True)]
    assert body(table) == [rf"\raisebox{{1.1ex}}[0pt]{{PSR}} & {' & '.join(cells)} \\"]
    assert r" & \multicolumn{5}{c}{Target risk 5\%} \\" in table.tex.splitlines()
    reasons = table.cells.filter(pl.col("reason").is_not_null()).select("metric", "dataset", "reason").rows()
    assert ("certified_coverage_at_risk_05", "slake", "seeds 17, 29, 43: too few images") in reasons
    assert ("kept_risk_at_risk_05", "ood6", "seeds 17, 29, 43: pmc: nothing is kept") in reasons
    assert not table.cells["bold"].any()

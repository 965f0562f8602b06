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
    ]
    table = build_table.build(thresholds, metrics(*rows), layout([method("psr", label="PSR")], TINY))
    cells = r"$.900_{\pm.100}$ & $.500_{\pm.000}$ & $.080_{\pm.010}$ & $.250_{\pm.000}$ & ---"
    assert body(table) == [rf"PSR & {cells} \\"]
    assert r" & \multicolumn{5}{c}{Target risk 5\%} \\" in table.tex.splitlines()
    assert table.cells["reason"].to_list() == [*[None] * 4, "seeds 17, 29, 43: pmc: nothing is kept"]
    assert not table.cells["bold"].any()

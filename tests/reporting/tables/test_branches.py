from dualread.reporting.tables import branches
from dualread.stages import build_table
from tests.reporting.tables.layouts import TINY, layout, method, metrics, over_seeds
from tests.reporting.tables.reading import body

METHODS = [method("psr", label="PSR"), method("per", label="PER"), method("dualread", label="DualRead")]


def test_a_line():
    rows = [
        *over_seeds("psr", "calibration_slope", [0.9, 1.0, 1.1]),
        *over_seeds("psr", "calibration_in_the_large", [-0.25, -0.3, -0.35]),
        *over_seeds("psr", "calibration_slope", [0.5] * 3, dataset="ood6"),
        *over_seeds("psr", "calibration_in_the_large", [None] * 3, dataset="ood6", reason="pmc: missing"),
    ]
    table = build_table.build(branches, metrics(*rows), layout(METHODS[:1], TINY))
    assert body(table) == [r"PSR & $1.000_{\pm.100}$ & $-.300_{\pm.050}$ & $.500_{\pm.000}$ & --- \\"]
    assert table.cells["reason"].to_list() == [None, None, None, "seeds 17, 29, 43: pmc: missing"]
    assert r" & \multicolumn{2}{c}{SLAKE-test} & \multicolumn{2}{c}{OOD averaged} \\" in table.tex.splitlines()
    assert not table.cells["bold"].any()

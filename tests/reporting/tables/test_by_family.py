from dualread.reporting.tables import by_family
from dualread.stages import build_table
from tests.reporting.tables.layouts import TINY, TOKEN, layout, method, metrics, over_seeds
from tests.reporting.tables.reading import body

METHODS = [method("rlvr", TOKEN, label="Token"), method("dualread", label="DualRead")]


def test_lines():
    rows = [
        *over_seeds("rlvr", "brier", [0.3] * 3, subset="family:body_part", n=12),
        *over_seeds("dualread", "brier", [0.1, 0.2, 0.3], subset="family:body_part", n=12),
        *over_seeds("dualread", "auroc", [None] * 3, subset="family:body_part", n=12, reason="one class only"),
        *over_seeds("dualread", "brier", [0.9] * 3),
    ]
    table = build_table.build(by_family, metrics(*rows), layout(METHODS, TINY))
    assert body(table) == [
        r"\multirow{2}{*}{body\_part} & \multirow{2}{*}{12} & Token & --- & --- & --- & $.300_{\pm.000}$ \\",
        r" &  & DualRead & --- & --- & --- & $\mathbf{.200}_{\pm.100}$ \\",
    ]
    assert table.cells.filter(method="dualread", metric="auroc")["reason"][0] == "seeds 17, 29, 43: one class only"


def test_a_data_set_without_families_says_so():
    table = build_table.build(by_family, metrics(), layout(METHODS, TINY))
    assert body(table) == []
    assert "records no families" in table.tex

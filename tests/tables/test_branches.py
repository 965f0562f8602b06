import pytest

from dualread.stages import build_table
from dualread.tables import branches
from dualread.tables._values import Key
from tests.tables.layouts import BACKBONES, TINY, layout, method, metrics, over_seeds
from tests.tables.reading import body, exchanged, read, swapped, tidy

METRICS = ("calibration_slope", "calibration_in_the_large")
METHODS = [method("psr", label="PSR"), method("per", label="PER"), method("dualread", label="DualRead")]
STUDY = layout(METHODS)
GRID = [
    (method["label"], [Key(b["name"], place, "all", method["name"], m) for place in ("slake", "ood6") for m in METRICS])
    for b in BACKBONES
    for method in METHODS
]


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


@pytest.mark.parametrize(
    ("field", "one", "other"),
    [("method", "psr", "per"), ("dataset", "slake", "ood6"), ("backbone", *(b["name"] for b in BACKBONES))],
)
def test_what_is_swapped_in_the_metrics_is_swapped_in_the_table_and_nothing_else(field, one, other):
    rows = tidy([key for _, keys in GRID for key in keys])
    found = (metrics(*rows), swapped(rows, field, one, other))
    before, after = (read(build_table.build(branches, table, STUDY), GRID) for table in found)
    assert after == exchanged(before, field, one, other)
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {key for key in before if getattr(key, field) in (one, other)}

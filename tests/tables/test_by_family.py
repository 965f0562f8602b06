import pytest

from dualread.stages import build_table
from dualread.tables import by_family
from dualread.tables._values import Key
from tests.tables.layouts import BACKBONES, TINY, TOKEN, layout, method, metrics, over_seeds
from tests.tables.reading import body, exchanged, read, swapped, tidy

METRICS = ("accuracy", "auroc", "ece15", "brier")
METHODS = [method("rlvr", TOKEN, label="Token"), method("dualread", label="DualRead")]
STUDY = layout(METHODS)
FAMILIES = ("family:color", "family:organ")
GRID = [
    (method["label"], [Key(b["name"], "slake", subset, method["name"], metric) for metric in METRICS])
    for b in BACKBONES
    for subset in FAMILIES
    for method in METHODS
]


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


@pytest.mark.parametrize(
    ("field", "one", "other"),
    [("method", "rlvr", "dualread"), ("subset", *FAMILIES), ("backbone", *(b["name"] for b in BACKBONES))],
)
def test_what_is_swapped_in_the_metrics_is_swapped_in_the_table(field, one, other):
    rows = tidy([key for _, keys in GRID for key in keys])
    found = (metrics(*rows), swapped(rows, field, one, other))
    before, after = (read(build_table.build(by_family, table, STUDY), GRID, column=2) for table in found)
    assert after == exchanged(before, field, one, other)
    assert all(before[key] != after[key] for key in before)


def test_a_data_set_without_families_says_so():
    table = build_table.build(by_family, metrics(), layout(METHODS, TINY))
    assert body(table) == []
    assert "records no families" in table.tex

import pytest

from dualread.stages import build_table
from dualread.tables import sc_tradeoff
from dualread.tables._layout import Layout
from dualread.tables._published import published
from dualread.tables._values import Key
from tests.tables.layouts import BACKBONES, TINY, layout, method, metrics, over_seeds
from tests.tables.reading import as_printed, body, exchanged, label, read, read_bold, swapped, tidy

METRICS = ("auroc", "brier", "aurc")
METHODS = [
    method("sc2", label="SC@2", cost="$2t$"),
    method("sc8", label="SC@8", cost="$8t$"),
    method("semantic_uncertainty", label="Semantic unc.", cost="$8t$"),
    method("bicr", label="BICR", cost=r"$t+2\rho$"),
    method("dualread", label="DualRead", cost=r"$t+\tau$"),
]
DATASETS = [{"name": "slake", "label": "SLAKE-test", "id": True}, {"name": "vqa_rad", "label": "VQA-RAD", "id": False}]
PAPER = {**layout(METHODS), "datasets": DATASETS}
GRID = [
    (method["label"], [Key(b["name"], place["name"], "all", method["name"], metric) for metric in METRICS])
    for b in BACKBONES
    for place in DATASETS
    for method in METHODS
]

# What the paper prints in bold, read off its Table sc_tradeoff.
PAPER_BEST = {
    ("qwen3-vl-2b", "slake"): ("dualread", "dualread", "dualread"),
    ("qwen3-vl-2b", "vqa_rad"): ("semantic_uncertainty", "semantic_uncertainty", "sc8"),
    ("medgemma-1.5-4b", "slake"): ("dualread", "dualread", "dualread"),
    ("medgemma-1.5-4b", "vqa_rad"): ("dualread", "semantic_uncertainty", "dualread"),
}


@pytest.fixture(scope="module")
def paper():
    return sc_tradeoff.build(published("sc_tradeoff"), Layout.parse(PAPER))


def test_every_published_cell_is_read_back_in_its_place(paper):
    values = published("sc_tradeoff")
    found = read(paper, GRID)
    assert len(values) == 60
    assert found == {key: as_printed(value) for key, value in values.items()}
    csv = {Key(*(row[name] for name in Key._fields)): row for row in paper.cells.iter_rows(named=True)}
    assert {key: row["printed"] for key, row in csv.items()} == found
    assert all((csv[key]["mean"], csv[key]["std"]) == (value.mean, value.std) for key, value in values.items())


def test_the_bold_cells_are_the_papers(paper):
    assert read_bold(paper, GRID) == {
        Key(*place, "all", name, metric)
        for place, names in PAPER_BEST.items()
        for metric, name in zip(METRICS, names, strict=True)
    }


def test_headings_and_costs_are_the_papers(paper):
    headings = [line for line in paper.tex.splitlines() if line.startswith(r"\multicolumn{5}")]
    assert [line.split(r"\emph{")[1].split("}")[0] for line in headings] == [
        "Qwen3VL-2B, ID: SLAKE-test",
        "Qwen3VL-2B, OOD: VQA-RAD",
        "MedGemma1.5-4B, ID: SLAKE-test",
        "MedGemma1.5-4B, OOD: VQA-RAD",
    ]
    assert [label(line, 1) for line in body(paper)] == ["$2t$", "$8t$", "$8t$", r"$t+2\rho$", r"$t+\tau$"] * 4


@pytest.mark.parametrize(
    ("field", "one", "other"),
    [("method", "sc2", "dualread"), ("dataset", "slake", "vqa_rad"), ("backbone", *(b["name"] for b in BACKBONES))],
)
def test_what_is_swapped_in_the_metrics_is_swapped_in_the_table_and_nothing_else(field, one, other):
    rows = tidy([key for _, keys in GRID for key in keys])
    found = (metrics(*rows), swapped(rows, field, one, other))
    before, after = (read(build_table.build(sc_tradeoff, table, PAPER), GRID) for table in found)
    assert after == exchanged(before, field, one, other)
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {key for key in before if getattr(key, field) in (one, other)}


def test_a_study_of_one_data_set_has_one_block_a_backbone():
    rows = over_seeds("dualread", "aurc", [0.1, 0.2, 0.3])
    table = build_table.build(sc_tradeoff, metrics(*rows), layout([*METHODS[-1:], method("mine", label="A_B")], TINY))
    assert body(table) == [
        r"DualRead & $t+\tau$ & --- & --- & $\mathbf{.200}_{\pm.100}$ \\",
        r"A\_B & --- & --- & --- & --- \\",
    ]
    assert table.tex.count(r"\emph{") == 1

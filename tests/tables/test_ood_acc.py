import pytest

from dualread.stages import build_table
from dualread.tables import ood_acc
from dualread.tables._layout import Layout
from dualread.tables._published import published
from dualread.tables._values import Key
from tests.tables.layouts import BACKBONES, PAPER_METHODS, TINY, layout, method, metrics, over_seeds
from tests.tables.reading import as_printed, body, exchanged, read, read_bold, swapped, tidy

METRICS = ("accuracy", "auroc", "ece15", "brier")
PLACES = {"slake": "SLAKE", "vqa_rad": "VQA-RAD", "path_vqa": "PathVQA"}
DATASETS = [{"name": name, "label": label, "id": name == "slake"} for name, label in PLACES.items()]
PAPER = {**layout(PAPER_METHODS), "datasets": DATASETS}
GRID = [
    (method["label"], [Key(b["name"], place, "all", method["name"], metric) for place in PLACES for metric in METRICS])
    for b in BACKBONES
    for method in PAPER_METHODS
]

# What the paper prints in bold, read off its Table ood_acc.
PAPER_BOLD = {
    *(("qwen3-vl-2b", "slake", metric, "dualread") for metric in METRICS[1:]),
    *(("qwen3-vl-2b", "vqa_rad", metric, "saplma") for metric in METRICS[1:]),
    ("qwen3-vl-2b", "path_vqa", "auroc", "saplma"),
    ("qwen3-vl-2b", "path_vqa", "ece15", "bicr"),
    ("qwen3-vl-2b", "path_vqa", "brier", "saplma"),
    ("medgemma-1.5-4b", "slake", "auroc", "dualread"),
    ("medgemma-1.5-4b", "slake", "ece15", "saplma"),
    ("medgemma-1.5-4b", "slake", "brier", "dualread"),
    ("medgemma-1.5-4b", "vqa_rad", "auroc", "vl_calibration"),
    ("medgemma-1.5-4b", "vqa_rad", "auroc", "dualread"),
    ("medgemma-1.5-4b", "vqa_rad", "ece15", "saplma"),
    ("medgemma-1.5-4b", "vqa_rad", "brier", "vl_calibration"),
    *(("medgemma-1.5-4b", "path_vqa", metric, "dualread") for metric in METRICS[1:]),
}


@pytest.fixture(scope="module")
def paper():
    return ood_acc.build(published("ood_acc"), Layout.parse(PAPER))


def test_every_published_cell_is_read_back_in_its_place(paper):
    values = published("ood_acc")
    found = read(paper, GRID)
    assert len(values) == 264
    assert found == {key: as_printed(value) for key, value in values.items()}
    csv = {Key(*(row[name] for name in Key._fields)): row for row in paper.cells.iter_rows(named=True)}
    assert {key: row["printed"] for key, row in csv.items()} == found
    assert all((csv[key]["mean"], csv[key]["std"]) == (value.mean, value.std) for key, value in values.items())


def test_the_bold_cells_are_the_papers(paper):
    bold = {(key.backbone, key.dataset, key.metric, key.method) for key in read_bold(paper, GRID)}
    assert bold == PAPER_BOLD


def test_the_head_is_the_papers(paper):
    lines = paper.tex.splitlines()
    assert r" & SLAKE & VQA-RAD & PathVQA \\" in lines
    assert r"Method & \multicolumn{3}{c}{Acc./AUROC (top); ECE-15/Brier (bottom)} \\" in lines


@pytest.mark.parametrize(
    ("field", "one", "other"),
    [("method", "bicr", "rlvr"), ("dataset", "slake", "path_vqa"), ("backbone", *(b["name"] for b in BACKBONES))],
)
def test_what_is_swapped_in_the_metrics_is_swapped_in_the_table_and_nothing_else(field, one, other):
    rows = tidy([key for _, keys in GRID for key in keys])
    before, after = (
        read(build_table.build(ood_acc, found, PAPER), GRID)
        for found in (metrics(*rows), swapped(rows, field, one, other))
    )
    assert after == exchanged(before, field, one, other)
    assert {key for key in before if before[key] != after[key]} == {
        k for k in before if getattr(k, field) in (one, other)
    }


def test_a_seed_of_one_method_changes_its_cells_alone():
    rows = tidy([key for _, keys in GRID for key in keys])
    before = read(build_table.build(ood_acc, metrics(*rows), PAPER), GRID)
    other = [{**row, "estimate": 0.9} if (row["seed"], row["method"]) == (29, "bicr") else row for row in rows]
    after = read(build_table.build(ood_acc, metrics(*other), PAPER), GRID)
    assert {key for key in before if before[key] != after[key]} == {key for key in before if key.method == "bicr"}


def test_a_study_of_one_data_set_has_one_column_and_what_is_missing_a_dash():
    table = build_table.build(
        ood_acc, metrics(*over_seeds("psr", "auroc", [0.7, 0.8, 0.9])), layout([method("psr")], TINY)
    )
    assert body(table) == [r"PSR & \shortstack{---\,/\,$\mathbf{.800}_{\pm.100}$\\---\,/\,---} \\"]
    assert set(table.cells.filter(metric="brier")["reason"]) == {"not among the study's metrics"}
    assert r"ood\_acc.csv has the reason" in table.tex

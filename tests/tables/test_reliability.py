import pytest

from dualread.stages import build_table
from dualread.tables import reliability
from dualread.tables._layout import Layout
from dualread.tables._published import published
from dualread.tables._values import Key
from tests.tables.layouts import BACKBONES, TINY, TOKEN, layout, method, metrics, over_seeds
from tests.tables.reading import as_printed, body, exchanged, label, read, read_bold, swapped, tidy

METRICS = ("accuracy", "auroc", "ece15", "brier", "aurc", "hce90")
METHODS = [method("rlcr", TOKEN, "rlcr", label="RLCR"), method("dualread", label="DualRead")]
DATASETS = [{"name": "slake", "label": "SLAKE", "id": True}, {"name": "vqa_rad", "label": "VQA-RAD", "id": False}]
PAPER = {**layout(METHODS), "datasets": DATASETS}
GRID = [
    (method["label"], [Key(b["name"], place["name"], subset, method["name"], metric) for metric in METRICS])
    for subset in ("open", "closed")
    for b in BACKBONES
    for place in DATASETS
    for method in METHODS
]


@pytest.fixture(scope="module")
def paper():
    return reliability.build(published("reliability"), Layout.parse(PAPER))


def test_every_published_cell_is_read_back_in_its_place(paper):
    values = published("reliability")
    found = read(paper, GRID, column=2)
    assert len(values) == 96
    assert found == {key: as_printed(value) for key, value in values.items()}
    csv = {Key(*(row[name] for name in Key._fields)): row for row in paper.cells.iter_rows(named=True)}
    assert {key: row["printed"] for key, row in csv.items()} == found
    assert all((csv[key]["mean"], csv[key]["std"]) == (value.mean, value.std) for key, value in values.items())


def test_the_bold_cells_are_the_papers(paper):
    """DualRead is best everywhere, but for two cells of Qwen's on VQA-RAD's open questions."""
    expected = {key for _, keys in GRID for key in keys if key.metric != "accuracy" and key.method == "dualread"}
    rlcr = {Key("qwen3-vl-2b", "vqa_rad", "open", "rlcr", metric) for metric in ("auroc", "ece15")}
    expected = expected - {key._replace(method="dualread") for key in rlcr} | rlcr
    assert read_bold(paper, GRID) == expected


def test_what_stands_beside_the_lines(paper):
    backbone, places = [label(line) for line in body(paper)], [label(line, 1) for line in body(paper)]
    qwen, medgemma = (rf"\multirow{{4}}{{*}}{{{name}}}" for name in ("Qwen3VL-2B", "MedGemma1.5-4B"))
    assert backbone == [qwen, "", "", "", medgemma, "", "", ""] * 2
    assert places == [r"\multirow{2}{*}{SLAKE}", "", r"\multirow{2}{*}{VQA-RAD}", ""] * 4
    headings = [line for line in paper.tex.splitlines() if line.startswith(r"\multicolumn{9}")]
    assert [line.split(r"\emph{")[1] for line in headings] == [r"Open questions}} \\", r"Closed questions}} \\"]


@pytest.mark.parametrize(
    ("field", "one", "other"),
    [
        ("method", "rlcr", "dualread"),
        ("dataset", "slake", "vqa_rad"),
        ("subset", "open", "closed"),
        ("backbone", *(b["name"] for b in BACKBONES)),
    ],
)
def test_what_is_swapped_in_the_metrics_is_swapped_in_the_table(field, one, other):
    rows = tidy([key for _, keys in GRID for key in keys])
    found = [
        build_table.build(reliability, table, PAPER) for table in (metrics(*rows), swapped(rows, field, one, other))
    ]
    before, after = (read(table, GRID, column=2) for table in found)
    assert after == exchanged(before, field, one, other)
    assert all(before[key] != after[key] for key in before)


def test_one_data_set_and_a_subset_without_questions():
    rows = [
        *over_seeds("dualread", "hce90", [0.1, 0.2, 0.3], subset="open"),
        *over_seeds("dualread", "hce90", [None] * 3, subset="closed", reason="no rows"),
    ]
    table = build_table.build(reliability, metrics(*rows), layout(METHODS[1:], TINY))
    assert body(table) == [
        r"Tiny & SLAKE-test & DualRead & --- & --- & --- & --- & --- & $\mathbf{.200}_{\pm.100}$ \\",
        r"Tiny & SLAKE-test & DualRead & --- & --- & --- & --- & --- & --- \\",
    ]
    closed = table.cells.filter(subset="closed", metric="hce90")
    assert closed["reason"].to_list() == ["seeds 17, 29, 43: no rows"]

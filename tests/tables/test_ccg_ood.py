import pytest

from dualread.stages import build_table
from dualread.tables import ccg_ood
from dualread.tables._layout import Layout
from dualread.tables._published import published
from dualread.tables._values import Key
from tests.tables.layouts import BACKBONES, PAPER_METHODS, TINY, layout, method, metrics, over_seeds
from tests.tables.reading import as_printed, body, exchanged, read, read_bold, swapped, tidy

METRICS = ("natural_ccg_auc", "strict_ccg_auc")
PLACES = {"vqa_rad": "VQA-RAD", "path_vqa": "PathVQA", "vqa_med_2019": "VQA-Med 2019"}
SLAKE = {"name": "slake", "label": "SLAKE-test", "id": True}
DATASETS = [SLAKE, *({"name": name, "label": label, "id": False} for name, label in PLACES.items())]
PAPER = {**layout(PAPER_METHODS), "datasets": DATASETS}
GRID = [
    (method["label"], [Key(b["name"], place, "all", method["name"], metric) for place in PLACES for metric in METRICS])
    for b in BACKBONES
    for method in PAPER_METHODS
]

# What the paper prints in bold, read off its Table ccg_ood: the best Natural and the best Strict one.
PAPER_BEST = {
    ("qwen3-vl-2b", "vqa_rad"): ("base", "bicr"),
    ("qwen3-vl-2b", "path_vqa"): ("saplma", "saplma"),
    ("qwen3-vl-2b", "vqa_med_2019"): ("base", "dualread"),
    ("medgemma-1.5-4b", "vqa_rad"): ("bicr", "dualread"),
    ("medgemma-1.5-4b", "path_vqa"): ("dcpo", "dcpo"),
    ("medgemma-1.5-4b", "vqa_med_2019"): ("dualread", "dualread"),
}


@pytest.fixture(scope="module")
def paper():
    return ccg_ood.build(published("ccg_ood"), Layout.parse(PAPER))


def test_every_published_cell_is_read_back_in_its_place(paper):
    values = published("ccg_ood")
    found = read(paper, GRID)
    assert len(values) == 132
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


def test_the_head_is_the_papers(paper):
    lines = paper.tex.splitlines()
    titles = " & ".join(rf"\multicolumn{{2}}{{c}}{{{label}}}" for label in PLACES.values())
    assert rf" & {titles} \\" in lines
    assert r"\cmidrule(lr){2-3}\cmidrule(lr){4-5}\cmidrule(lr){6-7}" in lines


@pytest.mark.parametrize(
    ("field", "one", "other"),
    [
        ("method", "bicr", "rlvr"),
        ("dataset", "vqa_rad", "vqa_med_2019"),
        ("backbone", *(b["name"] for b in BACKBONES)),
    ],
)
def test_what_is_swapped_in_the_metrics_is_swapped_in_the_table_and_nothing_else(field, one, other):
    rows = tidy([key for _, keys in GRID for key in keys])
    found = (metrics(*rows), swapped(rows, field, one, other))
    before, after = (read(build_table.build(ccg_ood, table, PAPER), GRID) for table in found)
    assert after == exchanged(before, field, one, other)
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {key for key in before if getattr(key, field) in (one, other)}


def test_a_value_on_few_images_has_a_dagger_and_no_other():
    rows = tidy([key for _, keys in GRID for key in keys])
    flags = over_seeds("bicr", "strict_underpowered", [0.0, 1.0, 0.0], dataset="path_vqa", backbone="qwen3-vl-2b")
    table = build_table.build(ccg_ood, metrics(*rows, *flags), PAPER)
    weak = {key for key, text in read(table, GRID).items() if text.endswith("†")}
    assert weak == {Key("qwen3-vl-2b", "path_vqa", "all", "bicr", "strict_ccg_auc")}
    assert "Underpowered: fewer than 30" in table.tex


def test_a_study_without_ood_data_sets_shows_the_one_that_it_has():
    table = build_table.build(
        ccg_ood, metrics(*over_seeds("psr", "strict_ccg_auc", [0.7] * 3)), layout([method("psr")], TINY)
    )
    assert body(table) == [r"PSR & --- & $\mathbf{.700}_{\pm.000}$ \\"]
    assert r"\multicolumn{2}{c}{SLAKE-test}" in table.tex
    assert table.cells["reason"].to_list() == ["not among the study's metrics", None]

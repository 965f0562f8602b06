import pytest

from dualread.stages import build_table
from dualread.tables import calib
from dualread.tables._layout import Layout
from dualread.tables._published import published
from dualread.tables._values import Key
from tests.tables.layouts import BACKBONES, PAPER_METHODS, TINY, layout, method, metrics, over_seeds
from tests.tables.reading import as_printed, body, exchanged, read, read_bold, swapped, tidy

METRICS = ("accuracy", "auroc", "ece15", "brier")
PLACES = {"pmc_vqa": "PMC-VQA", "omnimedvqa": "OmniMedVQA", "rexvqa": "ReXVQA", "vqa_med_2019": "VQA-Med 2019"}
SLAKE = {"name": "slake", "label": "SLAKE-test", "id": True}
DATASETS = [SLAKE, *({"name": name, "label": label, "id": False} for name, label in PLACES.items())]
PAPER = {**layout(PAPER_METHODS), "datasets": DATASETS}
GRID = [
    (
        method["label"],
        [Key(b["name"], place, "all", method["name"], m) for place in (*PLACES, "ood6") for m in METRICS],
    )
    for b in BACKBONES
    for method in PAPER_METHODS
]

# What the paper prints in bold, read off its Table calib: the best AUROC, ECE and Brier score, or the two that tie.
PAPER_BEST = {
    ("qwen3-vl-2b", "pmc_vqa"): ("p_true", "dualread", "dualread"),
    ("qwen3-vl-2b", "omnimedvqa"): ("p_true", "saplma", "saplma"),
    ("qwen3-vl-2b", "rexvqa"): ("base", "dualread", "dualread"),
    ("qwen3-vl-2b", "vqa_med_2019"): ("base", "saplma", "saplma"),
    ("qwen3-vl-2b", "ood6"): ("saplma", "saplma", "saplma"),
    ("medgemma-1.5-4b", "pmc_vqa"): ("base", "bicr", "vl_calibration bicr"),
    ("medgemma-1.5-4b", "omnimedvqa"): ("p_true", "prompt_ensemble", "prompt_ensemble"),
    ("medgemma-1.5-4b", "rexvqa"): ("p_true", "prompt_ensemble", "prompt_ensemble"),
    ("medgemma-1.5-4b", "vqa_med_2019"): ("saplma", "dualread", "dualread"),
    ("medgemma-1.5-4b", "ood6"): ("saplma", "dualread", "vl_calibration"),
}


@pytest.fixture(scope="module")
def paper():
    return calib.build(published("calib"), Layout.parse(PAPER))


def test_every_published_cell_is_read_back_in_its_place(paper):
    values = published("calib")
    found = read(paper, GRID)
    assert len(values) == 440
    assert found == {key: as_printed(value) for key, value in values.items()}
    csv = {Key(*(row[name] for name in Key._fields)): row for row in paper.cells.iter_rows(named=True)}
    assert {key: row["printed"] for key, row in csv.items()} == found
    assert all((csv[key]["mean"], csv[key]["std"]) == (value.mean, value.std) for key, value in values.items())


def test_the_bold_cells_are_the_papers(paper):
    bold = {(key.backbone, key.dataset, key.metric, key.method) for key in read_bold(paper, GRID)}
    assert bold == {
        (backbone, place, metric, name)
        for (backbone, place), names in PAPER_BEST.items()
        for metric, best in zip(METRICS[1:], names, strict=True)
        for name in best.split()
    }


def test_the_head_has_the_domains_without_the_in_distribution_one_and_their_mean(paper):
    assert r" & PMC-VQA & OmniMedVQA & ReXVQA & VQA-Med 2019 & OOD averaged \\" in paper.tex.splitlines()


@pytest.mark.parametrize(
    ("field", "one", "other"),
    [("method", "base", "dualread"), ("dataset", "rexvqa", "ood6"), ("backbone", *(b["name"] for b in BACKBONES))],
)
def test_what_is_swapped_in_the_metrics_is_swapped_in_the_table_and_nothing_else(field, one, other):
    rows = tidy([key for _, keys in GRID for key in keys])
    before, after = (
        read(build_table.build(calib, found, PAPER), GRID)
        for found in (metrics(*rows), swapped(rows, field, one, other))
    )
    assert after == exchanged(before, field, one, other)
    assert {key for key in before if before[key] != after[key]} == {
        k for k in before if getattr(k, field) in (one, other)
    }


def test_a_study_without_ood_data_sets_has_a_mean_that_is_a_dash():
    reason = "the study has no OOD data sets"
    rows = over_seeds("psr", "auroc", [None] * 3, dataset="ood6", reason=reason)
    table = build_table.build(calib, metrics(*rows), layout([method("psr")], TINY))
    assert body(table) == [r"PSR & \shortstack{---\,/\,---\\---\,/\,---} \\"]
    assert table.cells.filter(metric="auroc")["reason"].to_list() == [f"seeds 17, 29, 43: {reason}"]

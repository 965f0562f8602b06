from dualread.reporting.tables import ood_acc
from dualread.stages import build_table
from tests.reporting.tables import cases, synthetic
from tests.reporting.tables.layouts import TINY, layout, method, metrics, over_seeds
from tests.reporting.tables.reading import body

METRICS = ("accuracy", "auroc", "ece15", "brier")

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


def test_the_bold_cells_are_the_papers():
    paper = cases.paper("ood_acc")
    bold = {(key.backbone, key.dataset, key.metric, key.method) for key in cases.read_bold("ood_acc", paper)}
    assert bold == PAPER_BOLD


def test_the_head_is_the_papers():
    paper = cases.paper("ood_acc")
    lines = paper.tex.splitlines()
    assert r" & SLAKE-test & VQA-RAD & PathVQA \\" in lines
    arrows = r"Acc.$\uparrow$/AUROC$\uparrow$ (top); ECE-15$\downarrow$/Brier$\downarrow$ (bottom)"
    assert rf"Method & \multicolumn{{3}}{{c}}{{{arrows}}} \\" in lines


def test_a_seed_of_one_method_changes_only_the_cells_of_that_method():
    rows = synthetic.rows_of("ood_acc")
    before = synthetic.cells_of("ood_acc", rows)
    other = [{**row, "estimate": 0.9} if (row["seed"], row["method"]) == (29, "bicr") else row for row in rows]
    after = synthetic.cells_of("ood_acc", other)
    assert {key for key in before if before[key] != after[key]} == {key for key in before if key.method == "bicr"}


def test_a_study_with_one_data_set_has_one_column_and_missing_values_are_dashes():
    table = build_table.build(
        ood_acc, metrics(*over_seeds("psr", "auroc", [0.7, 0.8, 0.9])), layout([method("psr")], TINY)
    )
    assert body(table) == [
        r"\raisebox{1.1ex}[0pt]{PSR} & \shortstack{---\,/\,$\mathbf{.800}_{\pm.100}$\\[-2pt]---\,/\,---} \\"
    ]
    assert set(table.cells.filter(metric="brier")["reason"]) == {"not among the study's metrics"}
    assert r"ood\_acc.csv has the reason" in table.tex

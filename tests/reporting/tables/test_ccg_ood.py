from dualread.reporting.tables import ccg_ood
from dualread.reporting.tables.values import Key
from dualread.stages import build_table
from tests.reporting.tables import cases, synthetic
from tests.reporting.tables.layouts import TINY, layout, method, metrics, over_seeds
from tests.reporting.tables.reading import body

METRICS = ("natural_ccg_auc", "strict_ccg_auc")
PLACES = {"vqa_rad": "VQA-RAD", "path_vqa": "PathVQA", "vqa_med_2019": "VQA-Med 2019"}

# What the paper prints in bold, read off its Table ccg_ood: the best Natural and the best Strict one.
PAPER_BEST = {
    ("qwen3-vl-2b", "vqa_rad"): ("base", "bicr"),
    ("qwen3-vl-2b", "path_vqa"): ("saplma", "saplma"),
    ("qwen3-vl-2b", "vqa_med_2019"): ("base", "dualread"),
    ("medgemma-1.5-4b", "vqa_rad"): ("bicr", "dualread"),
    ("medgemma-1.5-4b", "path_vqa"): ("dcpo", "dcpo"),
    ("medgemma-1.5-4b", "vqa_med_2019"): ("dualread", "dualread"),
}


def test_the_bold_cells_are_the_papers():
    paper = cases.paper("ccg_ood")
    assert cases.read_bold("ccg_ood", paper) == {
        Key(*place, "all", name, metric)
        for place, names in PAPER_BEST.items()
        for metric, name in zip(METRICS, names, strict=True)
    }


def test_the_head_is_the_papers():
    paper = cases.paper("ccg_ood")
    lines = paper.tex.splitlines()
    titles = " & ".join(rf"\multicolumn{{2}}{{c}}{{{label}}}" for label in PLACES.values())
    assert rf" & {titles} \\" in lines
    assert r"\cmidrule(lr){2-3}\cmidrule(lr){4-5}\cmidrule(lr){6-7}" in lines


def test_a_value_on_few_images_has_a_dagger_and_no_other():
    rows = synthetic.rows_of("ccg_ood")
    flags = over_seeds("bicr", "strict_few_donors", [0.0, 1.0, 0.0], dataset="path_vqa", backbone="qwen3-vl-2b")
    table = synthetic.build("ccg_ood", [*rows, *flags])
    weak = {key for key, text in cases.read("ccg_ood", table).items() if text.endswith("†d")}
    assert weak == {Key("qwen3-vl-2b", "path_vqa", "all", "bicr", "strict_ccg_auc")}
    assert "Underpowered: the decisive pairs have fewer than 30" in table.tex


def test_a_study_without_ood_data_sets_shows_the_in_distribution_one():
    table = build_table.build(
        ccg_ood, metrics(*over_seeds("psr", "strict_ccg_auc", [0.7] * 3)), layout([method("psr")], TINY)
    )
    assert body(table) == [r"PSR & --- & $\mathbf{.700}_{\pm.000}$ \\"]
    assert r"\multicolumn{2}{c}{SLAKE-test}" in table.tex
    assert table.cells["reason"].to_list() == ["not among the study's metrics", None]

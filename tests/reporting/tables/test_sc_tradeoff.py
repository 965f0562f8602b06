from dualread.reporting.tables import sc_tradeoff
from dualread.reporting.tables.values import Key
from dualread.stages import build_table
from tests.reporting.tables import cases
from tests.reporting.tables.layouts import TINY, layout, method, metrics, over_seeds
from tests.reporting.tables.reading import body, label

METRICS = ("auroc", "brier", "aurc")
# What the paper prints in bold, read off its Table sc_tradeoff.
PAPER_BEST = {
    ("qwen3-vl-2b", "slake"): ("dualread", "dualread", "dualread"),
    ("qwen3-vl-2b", "vqa_rad"): ("semantic_uncertainty", "semantic_uncertainty", "sc8"),
    ("medgemma-1.5-4b", "slake"): ("dualread", "dualread", "dualread"),
    ("medgemma-1.5-4b", "vqa_rad"): ("dualread", "semantic_uncertainty", "dualread"),
}


def test_the_bold_cells_are_the_papers():
    paper = cases.paper("sc_tradeoff")
    assert cases.read_bold("sc_tradeoff", paper) == {
        Key(*place, "all", name, metric)
        for place, names in PAPER_BEST.items()
        for metric, name in zip(METRICS, names, strict=True)
    }


def test_headings_and_costs_are_the_papers():
    paper = cases.paper("sc_tradeoff")
    headings = [line for line in paper.tex.splitlines() if line.startswith(r"\multicolumn{5}")]
    assert [line.split(r"\emph{")[1].split("}")[0] for line in headings] == [
        "Qwen3VL-2B, ID: SLAKE-test",
        "Qwen3VL-2B, OOD: VQA-RAD",
        "MedGemma1.5-4B, ID: SLAKE-test",
        "MedGemma1.5-4B, OOD: VQA-RAD",
    ]
    assert [label(line, 1) for line in body(paper)] == ["$2t$", "$8t$", "$8t$", r"$t+2\rho$", r"$t+\tau$"] * 4


def test_a_study_with_one_data_set_has_one_block_per_backbone():
    rows = over_seeds("dualread", "aurc", [0.1, 0.2, 0.3])
    table = build_table.build(
        sc_tradeoff, metrics(*rows), layout([*cases.COSTLY[-1:], method("mine", label="A_B")], TINY)
    )
    assert body(table) == [
        r"DualRead & $t+\tau$ & --- & --- & $\mathbf{.200}_{\pm.100}$ \\",
        r"A\_B & --- & --- & --- & --- \\",
    ]
    assert table.tex.count(r"\emph{") == 1

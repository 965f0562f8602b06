from dualread.reporting.tables import cascade
from dualread.stages import build_table
from tests.reporting.tables import cases
from tests.reporting.tables.layouts import TINY, TOKEN, layout, method, metrics, over_seeds

# What the paper prints in bold, read off its Table cascade.
PAPER_BOLD = {
    ("qwen3-vl-2b", "auroc", "dualread"),
    ("qwen3-vl-2b", "brier", "dualread"),
    ("qwen3-vl-2b", "natural_ccg_auc", "dualread"),
    ("medgemma-1.5-4b", "auroc", "dualread"),
    ("medgemma-1.5-4b", "brier", "dualread"),
    ("medgemma-1.5-4b", "natural_ccg_auc", "per"),
}


def test_the_bold_cells_are_the_papers():
    paper = cases.paper("cascade")
    assert set(paper.cells.filter("bold").select("backbone", "metric", "method").rows()) == PAPER_BOLD


def test_a_line_of_the_paper():
    paper = cases.paper("cascade")
    per = r"PER & $\times$ & $\surd$ & $\surd$ & $.947_{\pm.003}$ & $.084_{\pm.001}$ & $.760_{\pm.038}$ \\"
    assert per in paper.tex.splitlines()


def test_components_follow_from_the_readers_of_a_method_not_from_its_name():
    mine = method("mine", label="Mine", readers=["combined", "psr", "p_visual"])
    assert (
        r"Mine & $\surd$ & $\times$ & $\surd$ & --- & --- & --- \\"
        in build_table.build(cascade, metrics(), layout([mine])).tex
    )


def test_the_lowest_brier_is_bold_and_a_verbalized_token_has_no_component():
    rows = [*over_seeds("rlvr", "brier", [0.3] * 3), *over_seeds("psr", "brier", [0.2] * 3)]
    table = build_table.build(cascade, metrics(*rows), layout([method("rlvr", TOKEN), method("psr")], TINY))
    assert table.cells.filter("bold").select("method", "metric").rows() == [("psr", "brier")]
    assert r"RLVR & $\times$ & $\times$ & $\times$ & --- & $.300_{\pm.000}$ & --- \\" in table.tex

from dualread.reporting.tables import costs
from dualread.stages import build_table
from tests.reporting.tables import cases
from tests.reporting.tables.layouts import TINY, estimate, layout, method, metrics, over_seeds

METHODS = [
    method("sc2", label="SC@2", cost="$2t$"),
    method("sc8", label="SC@8", cost="$8t$"),
    method("semantic_uncertainty", cost="$8t$"),
    method("bicr", label="BICR", cost=r"$t+2\rho$"),
    method("dualread", label="DualRead", cost=r"$t+\tau$"),
]
DATASETS = [{"name": "vqa_rad", "label": "VQA-RAD", "id": False}, {"name": "slake", "label": "SLAKE-test", "id": True}]

# What the paper prints in bold, read off its Table sc_tradeoff.
PAPER_BOLD = {
    *(("qwen3-vl-2b", "slake", metric, "dualread") for metric in ("auroc", "brier", "aurc")),
    ("qwen3-vl-2b", "vqa_rad", "auroc", "semantic_uncertainty"),
    ("qwen3-vl-2b", "vqa_rad", "brier", "semantic_uncertainty"),
    ("qwen3-vl-2b", "vqa_rad", "aurc", "sc8"),
    *(("medgemma-1.5-4b", "slake", metric, "dualread") for metric in ("auroc", "brier", "aurc")),
    ("medgemma-1.5-4b", "vqa_rad", "auroc", "dualread"),
    ("medgemma-1.5-4b", "vqa_rad", "brier", "semantic_uncertainty"),
    ("medgemma-1.5-4b", "vqa_rad", "aurc", "dualread"),
}


def measured(name, completions, prompts, prompts_only, replays, read, generated):
    values = {"completions": completions, "prompt_passes": prompts, "prompt_only_passes": prompts_only,
              "replay_passes": replays, "read_tokens": read, "generated_tokens": generated}  # fmt: skip
    return [row for key, value in values.items() for row in over_seeds(name, f"cost_{key}", [value] * 3)]


def test_the_bold_cells_are_the_papers():
    paper = cases.paper("costs")
    assert set(paper.cells.filter("bold").select("backbone", "dataset", "metric", "method").rows()) == PAPER_BOLD


def test_a_row_of_the_paper_with_the_in_distribution_columns_first():
    paper = cases.paper("costs")
    nothing = " & ".join(["---"] * 4)
    line = rf"BICR & $t+2\rho$ & {nothing} & $.934_{{\pm.002}}$ & $.099_{{\pm.003}}$ & $.101_{{\pm.004}}$ & $.686"
    assert any(found.startswith(line) for found in paper.tex.splitlines())
    assert "Measured costs that differ" not in paper.tex  # nothing was measured
    assert r"\cmidrule(lr){3-6}\cmidrule(lr){7-9}\cmidrule(lr){10-12}" in paper.tex


def test_measured_costs_and_those_that_differ_from_the_paper():
    rows = [
        # 1 greedy answer and 8 samples, in two encoded prompts; a prompt alone once; a replay once
        *measured("sc8", 9.0, 2.0, 0.0, 0.0, 200.0, 252.25),
        *measured("bicr", 1.0, 2.0, 1.0, 0.0, 200.0, 28.5),
        *measured("dualread", 1.0, 1.0, 0.0, 1.0, 228.5, 28.5),
    ]
    table = build_table.build(costs, metrics(*rows), layout(METHODS, TINY))
    lines = table.tex.splitlines()
    assert r"SC@8 & $8t$ & $2$ & $0$ & $200.0_{\pm.0}$ & $252.2_{\pm.0}$ & --- & --- & --- \\" in lines
    assert r"DualRead & $t+\tau$ & $1$ & $1$ & $228.5_{\pm.0}$ & $28.5_{\pm.0}$ & --- & --- & --- \\" in lines
    said = r"that differ from the paper's: SC@8 $9t$ (paper: $8t$), BICR $t+\rho$ (paper: $t+2\rho$)."
    assert said in table.tex
    row = table.cells.filter(method="sc8", metric="cost_generated_tokens").row(0, named=True)
    assert (row["mean"], row["printed"], row["bold"]) == (252.25, "252.2±.0", False)


def test_agreement_is_not_mentioned_and_a_method_without_notation_has_a_dash():
    rows = [*measured("dualread", 1.0, 1.0, 0.0, 1.0, 20.0, 3.0), *measured("null", 1.0, 1.0, 0.0, 0.0, 10.0, 3.0)]
    table = build_table.build(costs, metrics(*rows), layout([METHODS[-1], method("null", "Null", label="Null")], TINY))
    assert "Measured costs that differ" not in table.tex
    assert r"Null & --- & $1$ & $0$ & " in table.tex


def test_a_method_with_a_part_of_its_costs_measured_is_not_compared():
    rows = [
        *over_seeds("sc8", "cost_completions", [9.0] * 3),
        estimate("sc8", "cost_replay_passes", None, reason="why"),
    ]
    assert "Measured costs that differ" not in build_table.build(costs, metrics(*rows), layout(METHODS, TINY)).tex

"""Groups of answers as a table and a figure: which value stands where, by hand."""

from dualread.plugins import load
from dualread.reporting.figures import subgroups as figure
from dualread.schema.tables import FigureLayout, Labeled
from dualread.stages import build_table
from tests.reporting.tables import groups
from tests.reporting.tables.layouts import layout, method
from tests.specs import changed

ROWS = (
    groups.row("psr", "f", "auroc", 0.7, p_holm=0.04, difference=0.2),
    groups.row("psr", "m", "auroc", 0.5, p_holm=0.05),
    groups.row("psr", None, "auroc", 0.6),
    groups.row("psr", "f", "brier", 0.3),
    groups.row("psr", "m", "brier", None),
    groups.row("psr", "f", "accuracy", 0.8, n=70),
    groups.row("psr", "f", "certified_threshold_at_risk_10", 0.85),
    groups.row("psr", "m", "certified_threshold_at_risk_10", None),
    groups.row("psr", "m", "natural_ccg_auc", 0.5),
    groups.row("psr", "m", "natural_few_donors", 1.0),
    groups.row("base", "f", "auroc", 0.9, actor="base", seed=0),
    groups.row("psr", "f", "auroc", 0.1, seed=29),
    groups.row("psr", "f", "auroc", 0.2, seed=43),  # not shown
)


def shown(*methods):
    study = layout(methods)
    return changed(study, backbones=(changed(study.backbones[0], name="tiny", seeds=(17, 29)),))


def test_each_value_stands_in_its_row_with_the_interval_of_all_groups():
    study = shown(method("psr", label="PSR"), method("base", actor="base", label="Base"))
    table = build_table.build(load("tables", "subgroups"), groups.table(*ROWS), study)
    cells = {
        (row["seed"], row["method"], row["group"], row["metric"]): row["printed"] for row in table.cells.to_dicts()
    }
    of_seed = {key[1:]: text for key, text in cells.items() if key[0] == 17}
    assert of_seed == {
        ("psr", "f", "auroc"): ".700 [.600, .800]",
        ("psr", "m", "auroc"): ".500 [.400, .600]",
        ("psr", None, "auroc"): ".600 [.550, .650]",  # no group: its own interval
        ("psr", "m", "worst_auroc"): ".500 [.400, .600]",  # the least ends: those of m
        ("psr", "f", "brier"): ".300 [.200, .400]",
        ("psr", "m", "brier"): "---",
        ("psr", None, "worst_brier"): "---",  # one group has an interval
        ("psr", "f", "accuracy"): ".800 [.700, .900]",
        ("psr", None, "worst_accuracy"): "---",
        ("psr", "f", "certified_threshold_at_risk_10"): ".850 [.800, .900]",
        ("psr", "m", "certified_threshold_at_risk_10"): "---",
        ("psr", "m", "natural_ccg_auc"): ".500†d [.400, .600]",
        ("psr", None, "worst_natural_ccg_auc"): "---",
    }
    assert cells[0, "base", "f", "auroc"] == ".900 [.800, 1.000]"
    assert {seed for seed, *_ in cells} == {0, 17, 29}
    assert len(table.floats) == 2
    bold = [line for line in table.tex.splitlines() if "mathbf" in line]
    assert len(bold) == 1  # p below .05 after Holm's correction
    assert ".700" in bold[0]
    assert ">70<" in table.html


def test_the_figure_has_a_page_per_column_and_a_line_per_group_with_an_interval():
    rows = groups.table(*ROWS, groups.row("psr", "x", "auroc", 0.6, by="site"))
    named = {"backbones": (Labeled(name="tiny", label="Tiny"),), "datasets": (Labeled(name="slake", label="SLAKE"),)}
    methods = (Labeled(name="psr", label="PSR"), Labeled(name="base", label="Base"))
    drawing = figure.draw({"subgroups": rows}, FigureLayout(study="mine", **named, methods=methods))
    assert len(drawing.further) == 1
    drawn = drawing.values.filter(metric="auroc").select("by", "label", "estimate", "low", "high_retrained")
    assert drawn.rows() == [
        ("sex", "PSR: f", 0.7, 0.7 - 0.05, 0.7 + 0.1),
        ("sex", "PSR: m", 0.5, 0.5 - 0.05, 0.5 + 0.1),
        ("sex", "Base: f", 0.9, 0.9 - 0.05, 0.9 + 0.1),
        ("site", "PSR: x", 0.6, 0.6 - 0.05, 0.6 + 0.1),
    ]

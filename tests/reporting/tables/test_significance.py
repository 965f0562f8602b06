import pytest

from dualread.errors import ConfigError
from dualread.reporting.tables import significance
from dualread.stages import build_table
from tests.reporting.tables.contrasts import row, table
from tests.reporting.tables.layouts import TINY, layout, method
from tests.reporting.tables.reading import body, label
from tests.specs import changed

METHODS = [
    method("rlcr", label="RLCR"),
    method("question_prior", "Null", label="Prior"),
    method("dualread", label="DualRead"),
]


def build(*rows, contrasts=("significance",)):
    return build_table.build(significance, table(*rows), changed(layout(METHODS, TINY), contrasts=tuple(contrasts)))


def difference(metric, estimate, baseline="rlcr", **key):
    return row("dualread", metric, estimate, baseline=baseline, contrast="significance", **key)


def test_a_line_in_distribution_and_out_of_it():
    found = build(
        difference("auroc", 0.13, p_holm=0.0401),
        difference("brier", -0.1, p_holm=0.0499),
        difference("squared_calibration_error", -0.004, p_holm=0.3),
        difference("natural_ccg_auc", -0.2, p_holm=0.05),
        difference("strict_ccg_auc", None),
        difference("auroc", 0.01, p_holm=1.0, dataset="ood6"),
        difference("brier", 0.02, p_holm=0.0004, dataset="ood6"),
        difference("strict_ccg_auc", 0.3, p_holm=0.002, dataset="ood_ccg", short="donor"),
    )
    assert (
        r"\raisebox{1.1ex}[0pt]{RLCR} & \shortstack{$\mathbf{+.130}$\\[-2pt]$(.040)$} & "
        r"\shortstack{$\mathbf{-.100}$\\[-2pt]$(.050)$} & "
        r"\shortstack{$-.004$\\[-2pt]$(.300)$} & \shortstack{$-.200$\\[-2pt]$(.050)$} & --- & "
        r"\shortstack{$+.010$\\[-2pt]$(1)$} & "
        r"\shortstack{$\mathbf{+.020}$\\[-2pt]$(<.001)$} &  & "
        r"\shortstack{$+.300{}^{\dagger\mathrm{d}}$\\[-2pt]$(.002)$} \\"
    ) in found.tex.splitlines()
    assert found.cells["printed"].to_list() == [
        "+.130 (.040)", "-.100 (.050)", "-.004 (.300)", "-.200 (.050)", "---", "+.010 (1)", "+.020 (<.001)",
        "+.300†d (.002)",
    ]  # fmt: skip
    assert found.cells["p_holm"].to_list() == [0.0401, 0.0499, 0.3, 0.05, None, 1.0, 0.0004, 0.002]


def test_both_p_values_where_there_are_several_seeds_and_bold_where_both_are_small():
    retrained = {"low_retrained": 0.0, "high_retrained": 0.2, "p_retrained": 0.03}
    found = build(
        difference("auroc", 0.13, p_holm=0.002, p_holm_at_most=True, p_holm_retrained=0.04, **retrained),
        difference("brier", -0.1, p_holm=0.0004, p_holm_at_most=True, p_holm_retrained=0.06, **retrained),
    )
    assert found.cells["printed"].to_list() == ["+.130 (≤.002; .040)", "-.100 (<.001; .060)"]
    assert r"\shortstack{$\mathbf{+.130}$\\[-2pt]$(\le .002;\,.040)$}" in found.tex
    assert r"\shortstack{$-.100$\\[-2pt]$(<.001;\,.060)$}" in found.tex
    assert "first for these seeds" in found.tex


def test_every_other_method_has_a_row_and_the_compared_one_is_the_head():
    found = build(*(difference("auroc", 0.1, baseline=name) for name in ("rlcr", "question_prior")))
    lines = found.tex.splitlines()
    firsts = [label(line) for line in body(found)]
    assert firsts == [r"\raisebox{1.1ex}[0pt]{RLCR}", r"\raisebox{1.1ex}[0pt]{Prior}"]
    assert any(line.startswith(r"DualRead $-$ & AUROC$\uparrow$ & Brier$\downarrow$") for line in lines)
    assert "DualRead minus the method of the row" in found.tex


def test_other_contrasts_are_not_shown():
    other = row("dualread", "auroc", 0.7, baseline="rlcr", contrast="mine")
    assert build(difference("auroc", 0.1), other).cells["mean"].to_list() == [0.1]


def test_without_replicates_there_is_no_p_value():
    found = build(difference("auroc", 0.1, p=None, p_holm=None, low=None, high=None))
    assert found.cells["printed"].to_list() == ["+.100"]
    assert r"RLCR & $+.100$ & " in found.tex


@pytest.mark.parametrize("contrasts", [(), ("significance", "mine")])
def test_a_layout_with_no_or_several_contrasts_is_refused(contrasts):
    with pytest.raises(ConfigError, match="expected one: of a method with all others"):
        build(contrasts=contrasts)

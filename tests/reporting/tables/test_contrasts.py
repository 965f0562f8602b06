"""The tables of intervals and of differences: what a row of a contrasts table looks like in print."""

import pytest

from dualread.errors import ConfigError
from dualread.plugins import load
from dualread.schema.tables import LabeledDataset
from dualread.stages import build_table
from tests.reporting.tables import contrasts
from tests.reporting.tables.contrasts import row
from tests.reporting.tables.layouts import TINY, layout, method
from tests.specs import changed

METHODS = [
    *(method("rlcr", label="RLCR"), method("question_prior", "Null", label="Prior")),
    *(method("dualread", label="DualRead"), method("per", label="P-Visual")),
]
DATASETS = [
    LabeledDataset(name="pmc", label="PMC-VQA", id=False),
    LabeledDataset(name="slake", label="SLAKE-test", id=True),
]


def build(name, *rows, methods=METHODS[:3], datasets=(), names=("c",)):
    shown = layout(methods, TINY, datasets=datasets or DATASETS[1:])
    shown = changed(shown, contrasts=tuple(names))
    return build_table.build(load("tables", name), contrasts.table(*rows), shown)


def difference(metric, estimate, baseline="rlcr", **key):
    return row("dualread", metric, estimate, **{"baseline": baseline, "contrast": "c", **key})


def body(found):
    lines = found.tex.splitlines()
    return [line for line in lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")] if "&" in line]


def test_a_value_with_its_interval():
    found = build(
        "intervals",
        row("rlcr", "auroc", 0.8),
        row("rlcr", "brier", None),
        row("rlcr", "squared_calibration_error", -0.003),
        row("rlcr", "natural_ccg_auc", 0.6),
    )
    line = r"RLCR & $.800$~$[.700, .900]$ & --- & $-.003$~$[-.103, .097]$ & $.600$~$[.500, .700]$ &  \\"
    assert line in found.tex.splitlines()
    assert found.cells["printed"].to_list() == [".800 [.700, .900]", "---", "-.003 [-.103, .097]", ".600 [.500, .700]"]
    assert found.cells["std"].to_list() == [0.02] * 4
    assert "Only the interval" not in found.tex
    found = build("intervals", row("rlcr", "auroc", 0.8, low=None, high=None))
    assert found.cells["printed"].to_list() == [".800 ---"]
    assert r"& $.800$~--- &" in found.tex


def test_with_too_few_images_a_data_set_has_only_an_interval_and_a_mean_has_a_dagger():
    weak = row("rlcr", "strict_ccg_auc", 0.6, short="source")
    found = build("intervals", weak, {**weak, "dataset": "ood_ccg"})
    assert r"RLCR &  &  &  &  & $[.500, .700]$ \\" in found.tex
    assert r"RLCR &  &  &  &  & $.600{}^{\dagger\mathrm{s}}$~$[.500, .700]$ \\" in found.tex
    assert found.cells["printed"].to_list() == ["[.500, .700]", ".600†s [.500, .700]"]
    assert found.cells["mean"].to_list() == [0.6, 0.6]  # in the file the value is there
    assert found.tex.count("Only the interval is printed where the decisive pairs have fewer than 30") == 1
    assert found.tex.count("$^{\\dagger}$~Underpowered") == 1


def test_one_table_of_intervals_per_data_set_in_distribution_first_and_one_for_the_means():
    own = row("question_prior", "auroc", 0.7, dataset="pmc"), row("rlcr", "auroc", 0.5, dataset="ood6")
    others = difference("auroc", 0.1), row("rlcr", "auroc", 0.2, split="validation")  # which are not shown
    found = build("intervals", *own, *others, datasets=DATASETS)
    labels = [line for line in found.tex.splitlines() if line.startswith(r"\label")]
    assert labels == [rf"\label{{tab:intervals:tiny:{name}}}" for name in ("slake", "pmc", "ood")]
    assert found.cells.select("dataset", "method").rows() == [("pmc", "question_prior"), ("ood6", "rlcr")]
    assert "Intervals of Tiny, PMC-VQA, study embedded" in found.tex


def test_a_difference_and_its_intervals_stand_below_each_other():
    found = build(
        "paired",
        difference("auroc", 0.15),
        difference("natural_ccg_auc", -0.25, short="donor", low_retrained=-0.5, high_retrained=0.0004),
    )
    assert body(found) == [
        r"DualRead $-$ RLCR (SLAKE-test) & $+.150_{\pm.020}$ &  & $-.250_{\pm.020}{}^{\dagger\mathrm{d}}$ &  \\",
        r"\quad 95\% interval, these seeds & $[+.050, +.250]$ &  & $[-.350, -.150]$ &  \\",
        r"\quad retrained actors &  &  & $[-.500, .000]$ &  \\",
    ]
    assert found.cells.select("metric", "printed", "mean", "high").rows() == [
        ("auroc", "+.150±.020 [+.050, +.250]", 0.15, 0.25),
        ("natural_ccg_auc", "-.250±.020†d [-.350, -.150] [-.500, .000]", -0.25, -0.15),
    ]
    assert "Underpowered: the decisive pairs have fewer than 30" in found.tex


def test_an_undefined_difference_is_a_dash_with_its_reason():
    found = build("paired", difference("auroc", None), difference("brier", -0.1, seed_std=None, n_undefined=3))
    assert body(found)[0] == r"DualRead $-$ RLCR (SLAKE-test) & --- & $-.100$ &  &  \\"
    assert body(found)[1] == r"\quad 95\% interval, these seeds & --- & $[-.200, .000]$ &  &  \\"
    cell = found.cells.row(0, named=True)
    assert (cell["mean"], cell["printed"], cell["reason"]) == (None, "---", "one class only")
    assert "paired.csv has the reason" in found.tex
    assert "paired.csv counts them" in found.tex
    assert "paired.csv counts them" not in build("paired", difference("auroc", 0.1)).tex


def test_contrasts_are_in_the_order_of_the_layout_and_others_are_not_shown():
    rows = [difference("auroc", 0.1, contrast=name, baseline=name) for name in ("per", "p_state", "rlcr")]
    found = build("paired", *rows, row("dualread", "auroc", 0.9), names=["rlcr", "per"], methods=METHODS)
    assert [line.split(" & ")[0] for line in body(found)[::2]] == [
        "DualRead $-$ RLCR (SLAKE-test)",
        "DualRead $-$ P-Visual (SLAKE-test)",
    ]
    assert found.cells["baseline"].to_list() == ["rlcr", "per"]
    nothing = build("paired", names=[])
    assert (body(nothing), len(nothing.cells)) == ([], 0)


@pytest.mark.parametrize("value", [0.0004, -0.0004, 0.0])
def test_a_difference_that_rounds_to_zero_has_no_sign(value):
    assert body(build("paired", difference("auroc", value)))[0].split(" & ")[1] == r"$.000_{\pm.020}$"


def test_p_values_in_distribution_and_out_of_it():
    found = build(
        "significance",
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
        "significance",
        difference("auroc", 0.13, p_holm=0.002, p_holm_at_most=True, p_holm_retrained=0.04, **retrained),
        difference("brier", -0.1, p_holm=0.0004, p_holm_at_most=True, p_holm_retrained=0.06, **retrained),
    )
    assert found.cells["printed"].to_list() == ["+.130 (≤.002; .040)", "-.100 (<.001; .060)"]
    assert r"\shortstack{$\mathbf{+.130}$\\[-2pt]$(\le .002;\,.040)$}" in found.tex
    assert r"\shortstack{$-.100$\\[-2pt]$(<.001;\,.060)$}" in found.tex
    # Without replicates there is no p-value.
    found = build("significance", difference("auroc", 0.1, p=None, p_holm=None, low=None, high=None))
    assert found.cells["printed"].to_list() == ["+.100"]
    assert r"RLCR & $+.100$ & " in found.tex


@pytest.mark.parametrize("names", [(), ("c", "mine")])
def test_a_layout_with_no_or_several_contrasts_is_refused(names):
    with pytest.raises(ConfigError, match="expected one: of a method with all others"):
        build("significance", names=names)

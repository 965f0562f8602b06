import pytest

from dualread.reporting.tables import paired
from dualread.reporting.tables.published import published
from dualread.stages import build_table
from tests.reporting.tables.contrasts import row, table
from tests.reporting.tables.layouts import BACKBONES, TINY, layout, method
from tests.specs import changed

METHODS = [method("dualread", label="DualRead"), method("rlcr", label="RLCR"), method("per", label="P-Visual"),
           method("p_state", label="P-State")]  # fmt: skip
NAMES = {"p_visual": "per"}  # the paper's name of what our method has


def build(*rows, contrasts=("c",), backbones=TINY):
    return build_table.build(paired, table(*rows), changed(layout(METHODS, backbones), contrasts=tuple(contrasts)))


def difference(metric, estimate, **key):
    return row("dualread", metric, estimate, **{"baseline": "rlcr", "contrast": "c", **key})


def body(found):
    lines = found.tex.splitlines()
    return [line for line in lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")] if "&" in line]


def test_the_papers_rows_come_back_with_its_numbers():
    rows = []
    for key, value in published("paired").items():
        method, baseline = (NAMES.get(name, name) for name in key.method.split("-"))
        where = {"slake_val": ("slake", "validation"), "ood_unspecified": ("ood6", "test")}
        dataset, split = where.get(key.dataset, (key.dataset, "test"))
        found = row(method, key.metric.removeprefix("delta_"), value.mean, baseline=baseline, contrast=key.method)
        rows.append({**found, "backbone": key.backbone, "dataset": dataset, "split": split, "seed_std": value.std})
    found = build(*rows, contrasts=["p_visual-p_state", "dualread-rlcr"], backbones=BACKBONES)
    points = [line for line in body(found) if "interval" not in line and "retrained" not in line]
    assert points == [
        r"P-Visual $-$ P-State (validation) & $+.018_{\pm.008}$ & $-.016_{\pm.006}$ &  &  \\",
        r"DualRead $-$ RLCR (SLAKE-test) & $+.130_{\pm.015}$ & $+.067_{\pm.013}$ &  &  \\",
        r"DualRead $-$ RLCR (OOD) & $+.020_{\pm.012}$ & $+.077_{\pm.011}$ &  &  \\",
        r"P-Visual $-$ P-State (validation) & $+.011_{\pm.005}$ &  &  &  \\",
        r"DualRead $-$ RLCR (SLAKE-test) & $+.205_{\pm.024}$ & $+.110_{\pm.020}$ &  &  \\",
        r"DualRead $-$ RLCR (OOD) & $+.075_{\pm.023}$ & $+.102_{\pm.010}$ &  &  \\",
    ]
    assert len(found.cells) == 11


def test_value_and_intervals_stand_below_each_other():
    found = build(
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
    found = build(difference("auroc", None), difference("brier", -0.1, seed_std=None))
    assert body(found)[0] == r"DualRead $-$ RLCR (SLAKE-test) & --- & $-.100$ &  &  \\"
    assert body(found)[1] == r"\quad 95\% interval, these seeds & --- & $[-.200, .000]$ &  &  \\"
    cell = found.cells.row(0, named=True)
    assert (cell["mean"], cell["printed"], cell["reason"]) == (None, "---", "one class only")
    assert "paired.csv has the reason" in found.tex


def test_contrasts_are_in_the_order_of_the_layout_and_others_are_not_shown():
    rows = [difference("auroc", 0.1, contrast=name, baseline=name) for name in ("per", "p_state", "rlcr")]
    found = build(*rows, row("dualread", "auroc", 0.9), contrasts=["rlcr", "per"])
    assert [line.split(" & ")[0] for line in body(found)[::2]] == [
        "DualRead $-$ RLCR (SLAKE-test)",
        "DualRead $-$ P-Visual (SLAKE-test)",
    ]
    assert found.cells["baseline"].to_list() == ["rlcr", "per"]


def test_undefined_replicates_are_mentioned_in_the_caption():
    assert "paired.csv counts them" in build(difference("auroc", 0.1, n_undefined=3)).tex
    assert "paired.csv counts them" not in build(difference("auroc", 0.1)).tex


@pytest.mark.parametrize("value", [0.0004, -0.0004, 0.0])
def test_a_difference_that_rounds_to_zero_has_no_sign(value):
    assert body(build(difference("auroc", value)))[0].split(" & ")[1] == r"$.000_{\pm.020}$"


def test_a_study_without_contrasts_has_an_empty_table():
    found = build(contrasts=[])
    assert body(found) == []
    assert len(found.cells) == 0

import pytest

from dualread.errors import ConfigError
from dualread.reporting.tables import ccg
from dualread.reporting.tables.values import Key, Value
from dualread.stages import build_table
from tests.reporting.tables import cases
from tests.reporting.tables.layouts import BACKBONES, TINY, TOKEN, layout, method, metrics, over_seeds
from tests.reporting.tables.reading import body, printed

METHODS = [method("dualread", label="DualRead"), method("rlvr", TOKEN, label="Token")]
# The paper's name of what our metric has: its actor-side values are here the first method's.


def test_the_bold_cells_are_the_papers():
    paper = cases.paper("ccg")
    best = {Key(b.name, "slake", "all", "dualread", "natural_ccg_auc") for b in BACKBONES}
    assert cases.read_bold("ccg", paper) == best


def test_a_line_and_the_head_of_the_paper():
    paper = cases.paper("ccg")
    lines = paper.tex.splitlines()
    assert (
        r"Qwen3VL-2B & $.584_{\pm.020}$ & $.532_{\pm.014}$ & $.053_{\pm.007}$ & $109.7_{\pm3.1}$ & "
        r"$59.7_{\pm1.5}$/$47.7_{\pm2.1}$ & $.248_{\pm.007}$ & $\mathbf{.784}_{\pm.009}$ & $.516_{\pm.031}$ & "
        r"$+.269_{\pm.022}$ \\"
    ) in lines
    assert (
        r"Backbone & Acc.$^{\mathrm{real}}$ & Acc.$^{\mathrm{hn}}$ & VRS & $|\mathcal{E}|$ & Src/Dnr & VBR & "
        r"DualRead & GRPO (RLVR) & Paired $\Delta$ \\"
    ) in lines


def value(mean):
    return Value(mean=mean, std=None, n_runs=3, n=None)


def test_the_difference_is_computed_per_seed():
    # Differences .3, .1 and .2: their mean is .2 and their deviation .1, though both methods spread more than that.
    rows = [
        *over_seeds("dualread", "natural_ccg_auc", [0.9, 0.6, 0.3]),
        *over_seeds("rlvr", "natural_ccg_auc", [0.6, 0.5, 0.1]),
    ]
    table = build_table.build(ccg, metrics(*rows), layout(METHODS, TINY))
    found = table.cells.filter(metric="paired_delta").row(0, named=True)
    assert (found["mean"], found["std"]) == (pytest.approx(0.2), pytest.approx(0.1))
    assert (found["method"], found["printed"]) == ("dualread-rlvr", "+.200±.100")


def test_other_values_per_seed_change_the_cell_of_the_method_and_the_difference():
    values = {"dualread": [0.9, 0.6, 0.3], "rlvr": [0.6, 0.5, 0.1]}
    tables = []
    for of_rlvr in (values["rlvr"], values["rlvr"][::-1]):  # the seeds swapped: the same mean, another pairing
        rows = [row for name, of in {**values, "rlvr": of_rlvr}.items() for row in over_seeds(name, ccg._CCG, of)]
        tables.append(printed(body(build_table.build(ccg, metrics(*rows), layout(METHODS, TINY)))[0]))
    assert tables[0][:-1] == tables[1][:-1]  # all but the difference
    assert tables[0][-1] != tables[1][-1]


def test_an_undefined_value_makes_the_difference_undefined():
    reason = "no decisive pair among 4 pairs"
    rows = [
        *over_seeds("dualread", "natural_ccg_auc", [0.7] * 3),
        *over_seeds("rlvr", "natural_ccg_auc", [0.5, None, 0.5], reason=reason),
        *over_seeds("dualread", "natural_few_sources", [1.0] * 3),
    ]
    table = build_table.build(ccg, metrics(*rows), layout(METHODS, TINY))
    assert body(table)[0].endswith(r"$\mathbf{.700}_{\pm.000}{}^{\dagger\mathrm{s}}$ & --- & --- \\")
    assert table.cells.filter(metric="paired_delta")["reason"].to_list() == [f"seed 29: {reason}"]


def test_one_method_alone_has_no_difference_and_three_have_two():
    alone = build_table.build(ccg, metrics(), layout(METHODS[:1], TINY))
    assert "Delta" not in alone.tex.split(r"\toprule")[1]
    three = build_table.build(ccg, metrics(), layout([*METHODS, method("psr", label="P_S")], TINY))
    assert r"Paired $\Delta$ Token & Paired $\Delta$ P\_S \\" in three.tex


def test_methods_of_two_actors_are_refused():
    with pytest.raises(ConfigError, match="table ccg: methods of rlvr, rlcr"):
        build_table.build(ccg, metrics(), layout([METHODS[0], method("rlcr", TOKEN, "rlcr")], TINY))


def test_means_without_values_per_seed_give_no_difference():
    means = {Key("tiny", "slake", "all", name, "natural_ccg_auc"): value(0.7) for name in ("dualread", "rlvr")}
    table = ccg.build(means, layout(METHODS, TINY))
    assert table.cells.filter(metric="paired_delta")["reason"].to_list() == ["the values of single seeds are not known"]
    given = means | {Key("tiny", "slake", "all", "dualread-rlvr", "paired_delta"): value(0.25)}
    assert ccg.build(given, layout(METHODS, TINY)).cells["printed"][-1] == "+.250"

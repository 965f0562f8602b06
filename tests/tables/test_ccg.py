import pytest

from dualread.errors import ConfigError
from dualread.stages import build_table
from dualread.tables import ccg
from dualread.tables._layout import Layout
from dualread.tables._published import published
from dualread.tables._values import Key
from tests.tables.layouts import BACKBONES, TINY, TOKEN, layout, method, metrics, over_seeds
from tests.tables.reading import as_printed, body, exchanged, read, read_bold, swapped, tidy

METHODS = [method("dualread", label="DualRead"), method("rlvr", TOKEN, label="Token")]
PAPER = layout(METHODS)
ACTOR = ("accuracy_real", "accuracy_donor", "vrs", "decisive_pairs", "source_images", "donor_images", "vbr")
COUNTS = ("decisive_pairs", "source_images", "donor_images")
# The paper's name of what our metric has: its actor-side values are here the first method's.
RENAMED = {"actor": "dualread", "accuracy_hard_negative": "accuracy_donor"}


def keys_of(backbone):
    return [
        *(Key(backbone, "slake", "all", "dualread", metric) for metric in ACTOR),
        *(Key(backbone, "slake", "all", name, "natural_ccg_auc") for name in ("dualread", "rlvr")),
        Key(backbone, "slake", "all", "dualread-rlvr", "paired_delta"),
    ]


GRID = [(backbone["label"], keys_of(backbone["name"])) for backbone in BACKBONES]


def published_values():
    return {
        key._replace(method=RENAMED.get(key.method, key.method), metric=RENAMED.get(key.metric, key.metric)): value
        for key, value in published("ccg").items()
    }


@pytest.fixture(scope="module")
def paper():
    return ccg.build(published_values(), Layout.parse(PAPER))


def test_every_published_cell_is_read_back_in_its_place(paper):
    values = published_values()
    expected = {key: as_printed(value, 1 if key.metric in COUNTS else 3) for key, value in values.items()}
    expected = {key: f"+{text}" if key.metric == "paired_delta" else text for key, text in expected.items()}
    found = read(paper, GRID)
    assert len(values) == 20
    assert found == expected
    csv = {Key(*(row[name] for name in Key._fields)): row for row in paper.cells.iter_rows(named=True)}
    assert {key: row["printed"] for key, row in csv.items()} == found
    assert all((csv[key]["mean"], csv[key]["std"]) == (value.mean, value.std) for key, value in values.items())


def test_the_bold_cells_are_the_papers(paper):
    assert read_bold(paper, GRID) == {Key(b["name"], "slake", "all", "dualread", "natural_ccg_auc") for b in BACKBONES}


def test_a_line_and_the_head_of_the_paper(paper):
    lines = paper.tex.splitlines()
    assert (
        r"Qwen3VL-2B & $.584_{\pm.020}$ & $.532_{\pm.014}$ & $.053_{\pm.007}$ & $109.7_{\pm3.1}$ & "
        r"$59.7_{\pm1.5}$/$47.7_{\pm2.1}$ & $.248_{\pm.007}$ & $\mathbf{.784}_{\pm.009}$ & $.516_{\pm.031}$ & "
        r"$+.269_{\pm.022}$ \\"
    ) in lines
    assert (
        r"Backbone & Acc.$^{\mathrm{real}}$ & Acc.$^{\mathrm{hn}}$ & VRS & $|\mathcal{E}|$ & Src/Dnr & VBR & "
        r"DualRead & Token & Paired $\Delta$ \\"
    ) in lines


def test_the_difference_is_seed_by_seed():
    # Differences .3, .1 and .2: their mean is .2 and their deviation .1, though both methods spread more than that.
    rows = [
        *over_seeds("dualread", "natural_ccg_auc", [0.9, 0.6, 0.3]),
        *over_seeds("rlvr", "natural_ccg_auc", [0.6, 0.5, 0.1]),
    ]
    table = build_table.build(ccg, metrics(*rows), layout(METHODS, TINY))
    found = table.cells.filter(metric="paired_delta").row(0, named=True)
    assert (found["mean"], found["std"]) == (pytest.approx(0.2), pytest.approx(0.1))
    assert (found["method"], found["printed"]) == ("dualread-rlvr", "+.200±.100")


def test_other_seeds_of_one_method_move_its_cell_and_the_difference():
    values = {"dualread": [0.9, 0.6, 0.3], "rlvr": [0.6, 0.5, 0.1]}
    tables = []
    for of_rlvr in (values["rlvr"], values["rlvr"][::-1]):  # the seeds swapped: the same mean, another pairing
        rows = [row for name, of in {**values, "rlvr": of_rlvr}.items() for row in over_seeds(name, ccg._CCG, of)]
        tables.append(read(build_table.build(ccg, metrics(*rows), layout(METHODS, TINY)), [("Tiny", keys_of("tiny"))]))
    changed = {key for key in tables[0] if tables[0][key] != tables[1][key]}
    assert changed == {Key("tiny", "slake", "all", "dualread-rlvr", "paired_delta")}


def test_swapped_methods_and_backbones():
    rows = tidy([key for _, keys in GRID for key in keys if key.metric != "paired_delta"])
    one, other = (backbone["name"] for backbone in BACKBONES)
    before = read(build_table.build(ccg, metrics(*rows), PAPER), GRID)
    assert read(build_table.build(ccg, swapped(rows, "backbone", one, other), PAPER), GRID) == exchanged(
        before, "backbone", one, other
    )
    of_ccg = [{**row, "method": {"dualread": "rlvr", "rlvr": "dualread"}[row["method"]]}
              if row["metric"] == "natural_ccg_auc" else row for row in rows]  # fmt: skip
    after = read(build_table.build(ccg, metrics(*of_ccg), PAPER), GRID)
    assert {key.metric for key in before if before[key] != after[key]} == {"natural_ccg_auc", "paired_delta"}
    for backbone in (one, other):
        mine, its = (Key(backbone, "slake", "all", name, "natural_ccg_auc") for name in ("dualread", "rlvr"))
        assert (after[mine], after[its]) == (before[its], before[mine])
        difference = Key(backbone, "slake", "all", "dualread-rlvr", "paired_delta")
        assert (before[difference][0], after[difference][0]) == ("-", "+")


def test_an_undefined_value_leaves_no_difference():
    reason = "no decisive pair among 4 pairs"
    rows = [
        *over_seeds("dualread", "natural_ccg_auc", [0.7] * 3),
        *over_seeds("rlvr", "natural_ccg_auc", [0.5, None, 0.5], reason=reason),
        *over_seeds("dualread", "natural_underpowered", [1.0] * 3),
    ]
    table = build_table.build(ccg, metrics(*rows), layout(METHODS, TINY))
    assert body(table)[0].endswith(r"$\mathbf{.700}_{\pm.000}{}^{\dagger}$ & --- & --- \\")
    assert table.cells.filter(metric="paired_delta")["reason"].to_list() == [f"seed 29: {reason}"]


def test_one_method_alone_has_no_difference_and_three_have_two():
    alone = build_table.build(ccg, metrics(), layout(METHODS[:1], TINY))
    assert "Delta" not in alone.tex.split(r"\toprule")[1]
    three = build_table.build(ccg, metrics(), layout([*METHODS, method("psr", label="P_S")], TINY))
    assert r"Paired $\Delta$ Token & Paired $\Delta$ P\_S \\" in three.tex


def test_methods_of_two_actors_have_no_pairs_together():
    with pytest.raises(ConfigError, match="table ccg: methods of rlvr, rlcr"):
        build_table.build(ccg, metrics(), layout([METHODS[0], method("rlcr", TOKEN, "rlcr")], TINY))

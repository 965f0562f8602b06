from dualread.reporting.tables import channel
from dualread.stages import build_table
from tests.reporting.tables import cases, synthetic
from tests.reporting.tables.layouts import BACKBONES, TINY, TOKEN, estimate, layout, method, metrics, over_seeds
from tests.reporting.tables.reading import body, label

METHODS = [
    method("rlvr", TOKEN, label="RLVR token"),
    method("rlcr", TOKEN, "rlcr", label="RLCR token"),
    method("bicr", label="BICR"),
    method("dualread", label="DualRead"),
]


def test_the_head_and_the_lines_are_the_papers():
    paper = cases.paper("channel")
    lines = paper.tex.splitlines()
    assert r" &  & \multicolumn{2}{c}{Parse rate} & \multicolumn{2}{c}{Support} \\" in lines
    assert r"\cmidrule(lr){3-4}\cmidrule(lr){5-6}" in lines
    assert r"Backbone & Method & SLAKE-test & VQA-RAD & Unique & Endpt. \\" in lines
    assert r" & DualRead & $1.000$ & $1.000$ & $1061$ & $.000$ \\" in lines
    assert [label(line) for line in body(paper)[::4]] == [
        rf"\multirow{{4}}{{*}}{{{backbone.label}}}" for backbone in BACKBONES
    ]
    assert "seed 43." in paper.tex


def test_only_the_shown_seed_matters():
    seeds = {17: 0.1, 29: 0.2, 43: 0.3}
    rows = [{**row, "estimate": seeds[row["seed"]]} for row in synthetic.rows_of("channel")]
    rows = [
        {**row, "estimate": 100 * row["estimate"]} if row["metric"] == "unique_confidences" else row for row in rows
    ]
    before, others, own = (
        synthetic.cells_of("channel", of)
        for of in (rows, synthetic.swapped(rows, "seed", 17, 29), synthetic.swapped(rows, "seed", 17, 43))
    )
    assert others == before
    assert {key.metric: text for key, text in before.items()} == {
        **{"parse_rate": ".700", "unique_confidences": "30", "endpoint_share": ".300"}
    }
    assert {key.metric: text for key, text in own.items()} == {
        **{"parse_rate": ".900", "unique_confidences": "10", "endpoint_share": ".100"}
    }


def test_the_parse_rate_is_the_share_that_was_not_imputed():
    rows = [*over_seeds("rlvr", "imputed_share", [0.5, 0.25, 0.125]), estimate("rlcr", "imputed_share", 0.0, seed=43)]
    table = build_table.build(channel, metrics(*rows), layout(METHODS[:2], TINY, seeds=[43]))
    assert [line.split(" & ")[2] for line in body(table)] == ["$.875$", "$1.000$"]


def test_a_backbone_without_such_a_seed_has_dashes_with_the_reason():
    rows = over_seeds("rlvr", "imputed_share", [0.5, 0.25, 0.125])
    table = build_table.build(channel, metrics(*rows), layout(METHODS[:1], TINY, seeds=[]))
    assert body(table) == [r"Tiny & RLVR token & --- & --- & --- \\"]
    assert table.cells["reason"][0] == "no run has a seed that the table shows"
    other = build_table.build(channel, metrics(*rows[:2]), layout(METHODS[:1], TINY, seeds=[43]))
    assert other.cells["reason"][0] == "seed 43: missing"

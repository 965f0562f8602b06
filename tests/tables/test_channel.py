import pytest

from dualread.stages import build_table
from dualread.tables import channel
from dualread.tables._layout import Layout
from dualread.tables._published import published
from dualread.tables._values import Key
from tests.tables.layouts import BACKBONES, TINY, TOKEN, estimate, layout, method, metrics, over_seeds
from tests.tables.reading import as_printed, body, exchanged, label, read, swapped, tidy

METHODS = [
    method("rlvr", TOKEN, label="RLVR token"),
    method("rlcr", TOKEN, "rlcr", label="RLCR token"),
    method("bicr", label="BICR"),
    method("dualread", label="DualRead"),
]
DATASETS = [{"name": "slake", "label": "SLAKE", "id": True}, {"name": "vqa_rad", "label": "VQA-RAD", "id": False}]
PAPER = {**layout(METHODS, seeds=[43]), "datasets": DATASETS}


def keys_of(backbone, name):
    places = [("slake", "parse_rate"), ("vqa_rad", "parse_rate"), ("slake", "unique_confidences")]
    return [Key(backbone, place, "all", name, metric) for place, metric in [*places, ("slake", "endpoint_share")]]


GRID = [(method["label"], keys_of(b["name"], method["name"])) for b in BACKBONES for method in METHODS]


def published_values():
    """The paper's: its one row of two methods for each of them, and its two parse rates under one name."""
    values = {}
    for key, value in published("channel").items():
        metric = key.metric.removesuffix(f"_{key.dataset}")
        for name in key.method.split("_and_"):
            values[key._replace(method=name, metric=metric)] = value
    return values


@pytest.fixture(scope="module")
def paper():
    return channel.build(published_values(), Layout.parse(PAPER))


def test_every_published_cell_is_read_back_in_its_place(paper):
    values = published_values()
    found = read(paper, GRID, column=1)
    assert (len(published("channel")), len(values)) == (24, 24 + 8)
    assert found == {key: as_printed(v, 0 if key.metric == "unique_confidences" else 3) for key, v in values.items()}
    csv = {Key(*(row[name] for name in Key._fields)): row for row in paper.cells.iter_rows(named=True)}
    assert {key: row["printed"] for key, row in csv.items()} == found
    assert all((csv[key]["mean"], csv[key]["std"]) == (value.mean, value.std) for key, value in values.items())


def test_the_head_and_the_lines_are_the_papers(paper):
    lines = paper.tex.splitlines()
    assert r" &  & \multicolumn{2}{c}{Parse rate} & \multicolumn{2}{c}{Support} \\" in lines
    assert r"\cmidrule(lr){3-4}\cmidrule(lr){5-6}" in lines
    assert r"Backbone & Method & SLAKE & VQA-RAD & Unique & Endpt. \\" in lines
    assert r" & DualRead & $1.000$ & $1.000$ & $1061$ & $.000$ \\" in lines
    assert [label(line) for line in body(paper)[::4]] == [
        rf"\multirow{{4}}{{*}}{{{backbone['label']}}}" for backbone in BACKBONES
    ]
    assert "seed 43." in paper.tex


def rows_of_seeds():
    keys = [key._replace(metric="imputed_share") if key.metric == "parse_rate" else key for _, k in GRID for key in k]
    rows = tidy(keys)
    return [
        {**row, "estimate": 1000 * row["estimate"]} if row["metric"] == "unique_confidences" else row for row in rows
    ]


@pytest.mark.parametrize(
    ("field", "one", "other"),
    [("method", "rlcr", "dualread"), ("dataset", "slake", "vqa_rad"), ("backbone", *(b["name"] for b in BACKBONES))],
)
def test_what_is_swapped_in_the_metrics_is_swapped_in_the_table(field, one, other):
    rows = [row for row in rows_of_seeds() if field != "dataset" or row["metric"] == "imputed_share"]
    found = (metrics(*rows), swapped(rows, field, one, other))
    before, after = (read(build_table.build(channel, table, PAPER), GRID, column=1) for table in found)
    rates = {key: text for key, text in before.items() if field != "dataset" or key.metric == "parse_rate"}
    assert {key: after[key] for key in rates} == exchanged(rates, field, one, other)
    # Rounded, two neighbours of the made-up values can look the same in a count.
    assert all(
        before[key] != after[key] for key in rates if getattr(key, field) in (one, other) and "rate" in key.metric
    )


def test_one_seed_is_shown_and_the_others_change_nothing():
    seeds = {17: 0.1, 29: 0.2, 43: 0.3}
    rows = [{**row, "estimate": seeds[row["seed"]]} for row in rows_of_seeds()]
    rows = [
        {**row, "estimate": 100 * row["estimate"]} if row["metric"] == "unique_confidences" else row for row in rows
    ]
    before, others, own = (
        read(build_table.build(channel, table, PAPER), GRID, column=1)
        for table in (metrics(*rows), swapped(rows, "seed", 17, 29), swapped(rows, "seed", 17, 43))
    )
    assert others == before
    assert {key.metric: text for key, text in before.items()} == {
        **{"parse_rate": ".700", "unique_confidences": "30", "endpoint_share": ".300"}
    }
    assert {key.metric: text for key, text in own.items()} == {
        **{"parse_rate": ".900", "unique_confidences": "10", "endpoint_share": ".100"}
    }


def test_the_parse_rate_is_what_was_not_imputed():
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

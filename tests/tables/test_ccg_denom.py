import pytest

from dualread.stages import build_table
from dualread.tables import ccg_denom
from dualread.tables._layout import Layout
from dualread.tables._published import published
from dualread.tables._values import Key, Value
from tests.tables.layouts import BACKBONES, TINY, TOKEN, layout, method, metrics, over_seeds
from tests.tables.reading import as_printed, body, exchanged, read, swapped, tidy

ACTORS = ("rlvr", "rlcr", "dcpo", "vl_calibration")
METHODS = [method(name, TOKEN, name) for name in ACTORS]
PAPER = layout(METHODS)
COUNTS, RETAINED = ccg_denom._COUNTS, tuple(ccg_denom._RETAINED)
GRID = [
    (
        name.upper(),
        [Key(b["name"], "slake", "all", name, metric) for b in BACKBONES for metric in (*COUNTS, *RETAINED)],
    )
    for name in ACTORS
]


def published_values():
    """The paper's, the shares in percent."""
    values = {}
    for key, value in published("ccg_denom").items():
        if key.metric.startswith("retained"):
            percent = Value(mean=100 * value.mean, std=None, n_runs=3, n=None)
            values[key._replace(metric=f"{key.metric}_percent")] = percent
        else:
            values[key] = value
    return values


@pytest.fixture(scope="module")
def paper():
    return ccg_denom.build(published_values(), Layout.parse(PAPER))


def test_every_published_cell_is_read_back_in_its_place(paper):
    values = published_values()
    found = read(paper, GRID)
    assert len(values) == 32
    assert found == {key: as_printed(value, 0 if key.metric in RETAINED else 1) for key, value in values.items()}
    csv = {Key(*(row[name] for name in Key._fields)): row for row in paper.cells.iter_rows(named=True)}
    assert {key: row["printed"] for key, row in csv.items()} == found
    assert all((csv[key]["mean"], csv[key]["std"]) == (value.mean, value.std) for key, value in values.items())
    assert not any(csv[key]["bold"] for key in csv)


def test_a_line_of_the_paper(paper):
    assert (
        r"RLCR & $101.0_{\pm3.0}$ & $79.0_{\pm2.0}$ & $74$--$83$\% & $102.7_{\pm8.1}$ & $67.0_{\pm1.7}$ & $61$--$69$\% "
        r"\\"
    ) in paper.tex.splitlines()


def test_the_share_is_the_smallest_and_the_largest_of_any_seed():
    # 30/40, 33/60 and 40/50: between 55% and 80%
    rows = [
        *over_seeds("rlvr", "decisive_pairs", [40.0, 60.0, 50.0]),
        *over_seeds("rlvr", "strict_decisive_pairs", [30.0, 33.0, 40.0]),
    ]
    table = build_table.build(ccg_denom, metrics(*rows), layout(METHODS[:1], TINY))
    assert body(table) == [r"RLVR & $50.0_{\pm10.0}$ & $34.3_{\pm5.1}$ & $55$--$80$\% \\"]
    shares = [table.cells.filter(metric=metric)["mean"][0] for metric in RETAINED]
    assert shares == pytest.approx([55.0, 80.0], abs=1e-12)


@pytest.mark.parametrize(
    ("field", "one", "other"), [("method", "rlcr", "dcpo"), ("backbone", *(b["name"] for b in BACKBONES))]
)
def test_what_is_swapped_in_the_metrics_is_swapped_in_the_table_and_nothing_else(field, one, other):
    keys = [key for _, keys in GRID for key in keys if key.metric in COUNTS]
    rows = [{**row, "estimate": round(1000 * row["estimate"])} for row in tidy(keys)]
    found = (metrics(*rows), swapped(rows, field, one, other))
    before, after = (read(build_table.build(ccg_denom, table, PAPER), GRID) for table in found)
    assert after == exchanged(before, field, one, other)
    changed = {key for key in before if before[key] != after[key]}
    assert changed >= {key for key in before if getattr(key, field) in (one, other) and key.metric in COUNTS}
    assert changed <= {key for key in before if getattr(key, field) in (one, other)}


def test_swapped_seeds_of_one_count_move_the_share_alone():
    strict = [30.0, 33.0, 40.0]
    cells = []
    for of_seeds in (strict, strict[::-1]):  # then 40/40, 33/60 and 30/50
        rows = over_seeds("rlvr", "decisive_pairs", [40.0, 60.0, 50.0])
        rows += over_seeds("rlvr", "strict_decisive_pairs", of_seeds)
        cells.append(body(build_table.build(ccg_denom, metrics(*rows), layout(METHODS[:1], TINY)))[0].split(" & "))
    assert cells[1][:3] == cells[0][:3]
    assert cells[1][3] == r"$55$--$100$\% \\"


def test_without_a_decisive_pair_there_is_no_share():
    rows = [
        *over_seeds("rlvr", "decisive_pairs", [0.0, 6.0, 5.0]),
        *over_seeds("rlvr", "strict_decisive_pairs", [0.0, 3.0, 4.0]),
        *over_seeds("rlcr", "decisive_pairs", [None] * 3, reason="no same-question donors"),
    ]
    table = build_table.build(ccg_denom, metrics(*rows), layout(METHODS[:2], TINY))
    assert body(table) == [
        r"RLVR & $3.7_{\pm3.2}$ & $2.3_{\pm2.1}$ & --- \\",
        r"RLCR & --- & --- & --- \\",
    ]
    reasons = table.cells.filter(metric=RETAINED[0])["reason"].to_list()
    assert reasons == ["no decisive pair in some seed", "not among the study's metrics"]
    assert r"ccg\_denom.csv has the reason" in table.tex

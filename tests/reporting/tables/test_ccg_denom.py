import pytest

from dualread.reporting.tables import ccg_denom
from dualread.reporting.tables.values import Key, Value
from dualread.stages import build_table
from tests.reporting.tables import cases
from tests.reporting.tables.layouts import TINY, TOKEN, layout, method, metrics, over_seeds
from tests.reporting.tables.reading import body

ACTORS = ("rlvr", "rlcr", "dcpo", "vl_calibration")
METHODS = [method(name, TOKEN, name) for name in ACTORS]
COUNTS, RETAINED = ccg_denom._COUNTS, tuple(ccg_denom._RETAINED)


def test_a_line_of_the_paper():
    paper = cases.paper("ccg_denom")
    assert (
        r"RLCR & $101.0_{\pm3.0}$ & $79.0_{\pm2.0}$ & $74$--$83$\% & $102.7_{\pm8.1}$ & $67.0_{\pm1.7}$ & $61$--$69$\% "
        r"\\"
    ) in paper.tex.splitlines()


def test_the_share_is_the_smallest_and_the_largest_over_seeds():
    # 30/40, 33/60 and 40/50: between 55% and 80%
    rows = [
        *over_seeds("rlvr", "decisive_pairs", [40.0, 60.0, 50.0]),
        *over_seeds("rlvr", "strict_decisive_pairs", [30.0, 33.0, 40.0]),
    ]
    table = build_table.build(ccg_denom, metrics(*rows), layout(METHODS[:1], TINY))
    assert body(table) == [r"RLVR & $50.0_{\pm10.0}$ & $34.3_{\pm5.1}$ & $55$--$80$\% \\"]
    shares = [table.cells.filter(metric=metric)["mean"][0] for metric in RETAINED]
    assert shares == pytest.approx([55.0, 80.0], abs=1e-12)


def test_swapping_the_seeds_of_one_count_changes_only_the_share():
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


def test_means_without_values_per_seed_give_no_share():
    means = {
        Key("tiny", "slake", "all", "rlvr", name): Value(mean=n, std=None, n_runs=3, n=None)
        for name, n in (("decisive_pairs", 50.0), ("strict_decisive_pairs", 30.0))
    }
    table = ccg_denom.build(means, layout(METHODS[:1], TINY))
    assert body(table) == [r"RLVR & $50.0$ & $30.0$ & --- \\"]
    assert set(table.cells["reason"].drop_nulls()) == {"the values of single seeds are not known"}

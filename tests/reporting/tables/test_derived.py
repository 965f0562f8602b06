"""Values that a table computes from other values: differences, shares, counts and costs."""

from collections.abc import Mapping
from typing import Any

import pytest

from dualread.errors import ConfigError
from dualread.plugins import load
from dualread.reporting.tables import families
from dualread.reporting.tables.values import Key, Value
from dualread.stages import build_table
from tests.reporting.tables import cases, synthetic
from tests.reporting.tables.layouts import (
    TINY,
    TOKEN,
    datasets,
    estimate,
    layout,
    method,
    metrics,
    over_seeds,
)
from tests.reporting.tables.reading import body, printed
from tests.specs import changed

TWO = [method("dualread", label="DualRead"), method("rlvr", TOKEN, label="Token")]
CCG = "natural_ccg_auc"


def build(name, rows, methods=TWO, **changes: Any):
    return build_table.build(load("tables", name), metrics(*rows), changed(layout(methods, TINY), **changes))


def of_seeds(values: Mapping[tuple[str, str], list[float | None]], **key):
    """Rows of each (method, metric)."""
    return [row for (name, metric), of in values.items() for row in over_seeds(name, metric, of, **key)]


def test_a_difference_of_two_methods_is_computed_per_seed():
    # Differences .3, .1 and .2: their mean is .2 and their deviation .1, though both methods spread more than that.
    values = {("dualread", CCG): [0.9, 0.6, 0.3], ("rlvr", CCG): [0.6, 0.5, 0.1]}
    table = build("ccg", of_seeds(values))
    found = table.cells.filter(metric="paired_delta").row(0, named=True)
    assert (found["mean"], found["std"]) == (pytest.approx(0.2), pytest.approx(0.1))
    assert (found["method"], found["printed"]) == ("dualread-rlvr", "+.200±.100")
    # With two seeds swapped, both means are the same, and other seeds are paired.
    other = build("ccg", of_seeds({**values, ("rlvr", CCG): [0.1, 0.5, 0.6]}))
    cells = [printed(body(of)[0]) for of in (table, other)]
    assert cells[0][:-1] == cells[1][:-1]
    assert cells[0][-1] != cells[1][-1]


def test_an_undefined_value_makes_the_difference_undefined():
    values = {
        ("dualread", CCG): [0.7] * 3,
        ("rlvr", CCG): [0.5, None, 0.5],
        ("dualread", "natural_few_sources"): [1.0] * 3,
    }
    table = build("ccg", of_seeds(values, reason="no decisive pair among 4 pairs"))
    assert body(table)[0].endswith(r"$\mathbf{.700}_{\pm.000}{}^{\dagger\mathrm{s}}$ & --- & --- \\")
    assert table.cells.filter(metric="paired_delta")["reason"].to_list() == ["seed 29: no decisive pair among 4 pairs"]


def test_every_other_method_of_the_one_actor_has_a_difference():
    assert "Delta" not in build("ccg", [], TWO[:1]).tex.split(r"\toprule")[1]
    assert (
        r"Paired $\Delta$ Token & Paired $\Delta$ P\_S \\" in build("ccg", [], [*TWO, method("psr", label="P_S")]).tex
    )
    with pytest.raises(ConfigError, match="table ccg: methods of rlvr, rlcr"):
        build("ccg", [], [TWO[0], method("rlcr", TOKEN, "rlcr")])


def test_the_retained_share_is_the_smallest_and_the_largest_over_seeds():
    # 30/40, 33/60 and 40/50: between 55% and 80%; with two seeds swapped 40/40, 33/60 and 30/50
    pairs, strict = ("rlvr", "decisive_pairs"), ("rlvr", "strict_decisive_pairs")
    lines = []
    for counts in ([30.0, 33.0, 40.0], [40.0, 33.0, 30.0]):
        table = build("ccg_denom", of_seeds({pairs: [40.0, 60.0, 50.0], strict: counts}), TWO[1:])
        lines += body(table)
    assert lines == [rf"Token & $50.0_{{\pm10.0}}$ & $34.3_{{\pm5.1}}$ & $55$--${n}$\% \\" for n in (80, 100)]
    shares = table.cells["mean"].to_list()[2:]
    assert shares == pytest.approx([55.0, 100.0], abs=1e-12)


def test_without_a_decisive_pair_there_is_no_share():
    counts = {("rlvr", "decisive_pairs"): [0.0, 6.0, 5.0], ("rlvr", "strict_decisive_pairs"): [0.0, 3.0, 4.0]}
    table = build("ccg_denom", of_seeds(counts), TWO[1:])
    assert body(table) == [r"Token & $3.7_{\pm3.2}$ & $2.3_{\pm2.1}$ & --- \\"]
    assert table.cells["reason"].to_list() == [None, None, *["no decisive pair in some seed"] * 2]


def test_means_without_values_per_seed_give_neither_difference_nor_share():
    def mean(value):
        return Value(mean=value, std=None, n_runs=3, n=None)

    counts = {"decisive_pairs": 50.0, "strict_decisive_pairs": 30.0, CCG: 0.7}
    values = {Key("tiny", "slake", "all", of.name, name): mean(n) for of in TWO for name, n in counts.items()}
    unknown = ["the values of single seeds are not known"]
    difference = load("tables", "ccg").build(values, layout(TWO, TINY))
    assert difference.cells.filter(metric="paired_delta")["reason"].to_list() == unknown
    shares = load("tables", "ccg_denom").build(values, layout(TWO, TINY))
    assert set(shares.cells["reason"].drop_nulls()) == set(unknown)
    given = values | {Key("tiny", "slake", "all", "dualread-rlvr", "paired_delta"): mean(0.25)}
    assert load("tables", "ccg").build(given, layout(TWO, TINY)).cells["printed"][-1] == "+.250"


def test_the_parse_rate_is_the_share_that_was_not_imputed():
    rows = [*over_seeds("rlvr", "imputed_share", [0.5, 0.25, 0.125]), estimate("rlcr", "imputed_share", 0.0, seed=43)]
    methods = [TWO[1], method("rlcr", TOKEN, "rlcr")]
    table = build_table.build(load("tables", "channel"), metrics(*rows), layout(methods, TINY, seeds=[43]))
    assert [line.split(" & ")[2] for line in body(table)] == ["$.875$", "$1.000$"]
    none = build_table.build(load("tables", "channel"), metrics(*rows), layout(methods[:1], TINY, seeds=[]))
    assert none.cells["reason"][0] == "no run has a seed that the table shows"
    missing = build_table.build(load("tables", "channel"), metrics(*rows[:2]), layout(methods[:1], TINY, seeds=[43]))
    assert missing.cells["reason"][0] == "seed 43: missing"


def test_the_confidence_channel_is_of_the_shown_seed_alone():
    rows = [{**row, "estimate": {17: 0.1, 29: 0.2, 43: 0.3}[row["seed"]]} for row in synthetic.rows_of("channel")]
    cells = synthetic.cells_of("channel", rows)
    assert {key.metric: text for key, text in cells.items()} == {
        **{"parse_rate": ".700", "unique_confidences": "0", "endpoint_share": ".300"}
    }


def of_families(dataset, **sizes):
    return [
        row
        for family, n in sizes.items()
        for of in TWO
        for row in over_seeds(of.name, "accuracy", [0.5] * 3, dataset=dataset, subset=f"family:{family}", n=n)
    ]


STUDY = tuple(datasets("path_vqa", "pmc_vqa"))


def test_counts_per_family_with_those_of_the_paper_for_pathvqa():
    found = [
        *of_families("slake", body_part=12, position=7),
        *of_families("path_vqa", position=40, presence=430, other=1),
    ]
    table = build("families", found, datasets=STUDY)
    assert r"Family & SLAKE-test & PathVQA & (paper) \\" in table.tex.splitlines()  # PMC-VQA records none
    assert body(table) == [
        r"body\_part & $12$ & --- & --- \\",
        r"modality & --- & --- & $10$ \\",
        r"other & --- & $1$ & $506$ \\",
        r"position & $7$ & $40$ & $51$ \\",
        r"presence & --- & $430$ & $429$ \\",
        r"size & --- & --- & $4$ \\",
    ]
    cells = table.cells.filter(subset="family:body_part").select("dataset", "method", "metric", "mean", "reason").rows()
    assert cells == [
        ("slake", "", "questions", 12.0, None),
        ("path_vqa", "", "questions", None, "no question of this family"),
        ("path_vqa", "paper", "questions", None, "the paper names no such family"),
    ]
    assert sum(families.PUBLISHED["path_vqa"].values()) == 1000  # 10 + 51 + 429 + 4 + 506


def test_counts_that_differ_between_runs_are_undefined():
    table = build("families", [*of_families("slake", organ=12)[:3], *of_families("slake", organ=13)[3:]])
    assert table.cells.select("printed", "reason").rows() == [("---", "not the same number in every run")]


def measured(name, completions, prompts, prompts_only, replays, read, generated):
    values = {"completions": completions, "prompt_passes": prompts, "prompt_only_passes": prompts_only,
              "replay_passes": replays, "read_tokens": read, "generated_tokens": generated}  # fmt: skip
    return [row for key, value in values.items() for row in over_seeds(name, f"cost_{key}", [value] * 3)]


def test_measured_costs_and_those_that_differ_from_the_paper():
    rows = [
        # 1 greedy answer and 8 samples, in two encoded prompts; a prompt alone once; a replay once
        *measured("sc8", 9.0, 2.0, 0.0, 0.0, 200.0, 252.25),
        *measured("bicr", 1.0, 2.0, 1.0, 0.0, 200.0, 28.5),
        *measured("dualread", 1.0, 1.0, 0.0, 1.0, 228.5, 28.5),
        *over_seeds("sc2", "cost_completions", [9.0] * 3),  # a part of its costs alone, which is not compared
    ]
    table = build("costs", rows, cases.COSTLY)
    lines = table.tex.splitlines()
    assert r"SC@8 & $8t$ & $2$ & $0$ & $200.0_{\pm.0}$ & $252.2_{\pm.0}$ & --- & --- & --- \\" in lines
    assert r"DualRead & $t+\tau$ & $1$ & $1$ & $228.5_{\pm.0}$ & $28.5_{\pm.0}$ & --- & --- & --- \\" in lines
    said = r"that differ from the paper's: SC@8 $9t$ (paper: $8t$), BICR $t+\rho$ (paper: $t+2\rho$)."
    assert said in table.tex
    row = table.cells.filter(method="sc8", metric="cost_generated_tokens").row(0, named=True)
    assert (row["mean"], row["printed"], row["bold"]) == (252.25, "252.2±.0", False)


def test_a_table_of_costs_says_whether_states_come_from_the_pass_that_answers():
    rows = [*measured("dualread", 1.0, 1.0, 0.0, 0.0, 20.0, 3.0), *measured("sc8", 8.0, 2.0, 0.0, 0.0, 200.0, 252.0)]
    said = "The pass that answers keeps the hidden states"
    kept = [changed(one, states="generation") if one.name == "dualread" else one for one in cases.COSTLY]
    table = build("costs", rows, kept)
    assert said in table.tex
    assert r"that differ from the paper's: DualRead $t$ (paper: $t+\tau$)." in table.tex
    assert said not in build("costs", rows, cases.COSTLY).tex

"""Names that are swapped in the metrics are swapped in the tables, and nothing else moves there but bold print."""

from itertools import combinations

import pytest

from dualread.evaluation.aggregates import aggregate
from dualread.plugins import load
from dualread.stages import build_table
from dualread.tables._values import Value
from tests.tables import cases
from tests.tables.cases import CASES, DIGITS
from tests.tables.layouts import estimate, metrics

SEEDS = (17, 29, 43)
# What the table computes from the values of other metrics, or of other methods.
DERIVED = ("paired_delta", "retained_low_percent", "retained_high_percent")
# What is an actor's, so that its methods must agree on it.
OF_ACTOR = ("accuracy", "shuffled_accuracy", "shuffled_accuracy_drop")
MEANS = ("ood6", "ood_ccg")


def stands_once(name, key):
    """Whether it is a value of the one actor that all methods of the table judge."""
    return name == "ccg" and key.metric not in ("natural_ccg_auc", "paired_delta")


def keys_of(name):
    """What the table has cells of."""
    nothing = Value(mean=None, std=None, n_runs=0, n=None)
    return list(cases.read(name, CASES[name].build(name, dict.fromkeys(CASES[name].sample, nothing))))


def rows_of(name, keys, seeds=SEEDS):
    """Metrics in which any two cells print another mean: .101, .102, ..., a tenth of itself apart by seed.

    A fifth of the last digit is added, so that no mean over six of them is half way between two printed numbers.
    """
    actors = {of["name"]: of["actor"] for of in CASES[name].layout["methods"]}
    numbers, rows = {}, []
    for key in keys:
        is_shared = key.metric in OF_ACTOR
        what = key._replace(method=actors[key.method]) if is_shared else key
        k = numbers.setdefault(what, len(numbers) + 1)
        methods = actors if stands_once(name, key) else [key.method]
        mean = (0.1002 + k / 1000) * 10 ** (3 - DIGITS.get(key.metric, 3))
        metric = "imputed_share" if key.metric == "parse_rate" else key.metric
        rows += [
            estimate(
                **{"method": method, "metric": metric, "value": mean * (1 + (s - 1) / 10), "seed": seed},
                **{"dataset": key.dataset, "subset": key.subset, "backbone": key.backbone},
            )
            for method in methods
            for s, seed in enumerate(seeds)
        ]
    return rows


def cells_of(name, rows):
    table = build_table.build(load("tables", name), metrics(*rows), CASES[name].layout)
    return cases.read(name, table)


def swapped(rows, field, one, other):
    """The rows with two names of a field exchanged."""
    names = {one: other, other: one}
    return [{**row, field: names.get(row[field], row[field])} for row in rows]


def exchanged(cells, field, one, other):
    """The cells as they must be when two names of a field of their keys are exchanged; a dash where there was none."""
    names = {one: other, other: one}
    return {
        key: cells.get(key._replace(**{field: names.get(getattr(key, field), getattr(key, field))}), "---")
        for key in cells
    }


def pairs_of(name):
    keys = keys_of(name)
    methods = [of["name"] for of in CASES[name].layout["methods"]]
    found = [("method", *pair) for pair in dict.fromkeys((tuple(methods[:2]), tuple(methods[-2:])))]
    for field in ("backbone", "dataset", "subset"):
        found += [(field, *pair) for pair in combinations(dict.fromkeys(getattr(key, field) for key in keys), 2)]
    return found


@pytest.mark.parametrize(
    ("name", "field", "one", "other"), [(name, *pair) for name in CASES for pair in pairs_of(name)]
)
def test_swapped_names_exchange_their_cells_and_leave_all_others(name, field, one, other):
    keys = [key for key in keys_of(name) if key.metric not in DERIVED]
    rows = rows_of(name, keys)
    before, after = cells_of(name, rows), cells_of(name, swapped(rows, field, one, other))
    means = {before[key].split("±")[0] for key in keys if key.metric not in OF_ACTOR}
    assert len(means) == sum(key.metric not in OF_ACTOR for key in keys)  # or a swap could go unseen
    expected = exchanged(before, field, one, other)
    if field == "method":
        expected |= {key: text for key, text in before.items() if stands_once(name, key)}
    # A share moves with its backbone and its method; a difference of two methods is theirs, and changes its sign.
    mine = {key for key in before if key.metric != "paired_delta" or field == "backbone"}
    assert {key: after[key] for key in mine} == {key: expected[key] for key in mine}
    assert after != before
    for key in before.keys() - mine:
        assert {before[key][0], after[key][0]} == {"+", "-"}
        assert before[key][1:] == after[key][1:]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("one", "other"), combinations(SEEDS, 2))
def test_swapped_seeds_change_nothing_where_means_run_over_them(name, one, other):
    rows = rows_of(name, [key for key in keys_of(name) if key.metric not in DERIVED])
    tables = [
        build_table.build(load("tables", name), metrics(*of), CASES[name].layout)
        for of in (rows, swapped(rows, "seed", one, other))
    ]
    shown = CASES[name].layout["backbones"][0]["seeds"]
    if (one in shown) == (other in shown):
        assert tables[0].tex == tables[1].tex
        assert tables[0].cells.equals(tables[1].cells)
    else:
        assert tables[0].tex != tables[1].tex


@pytest.mark.parametrize("name", [name for name in CASES if any(key.dataset in MEANS for key in keys_of(name))])
def test_swapped_domains_leave_their_mean(name):
    domains = ("vqa_rad", "path_vqa", "pmc_vqa", "omnimedvqa", "rexvqa", "vqa_med_2019")
    keys = keys_of(name)
    behind = dict.fromkeys(key for key in keys if key.dataset not in MEANS)
    behind |= dict.fromkeys(key._replace(dataset=of) for key in keys if key.dataset in MEANS for of in domains)
    rows = rows_of(name, behind)
    one, other = [of for of in domains if of in {key.dataset for key in keys}][-2:] or domains[-2:]
    before, after = (
        cells_of(name, [*found.iter_rows(named=True), *aggregate(found, ood=domains, ood_ccg=domains).to_dicts()])
        for found in (metrics(*rows), metrics(*swapped(rows, "dataset", one, other)))
    )
    assert "---" not in before.values()
    assert after == exchanged(before, "dataset", one, other)

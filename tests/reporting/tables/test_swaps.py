"""Swapping two names in the metrics swaps them in the tables and changes nothing else but bold print."""

from itertools import combinations

import pytest

from dualread.evaluation.aggregates import aggregate
from tests.reporting.tables.cases import CASES
from tests.reporting.tables.layouts import metrics
from tests.reporting.tables.synthetic import (
    DERIVED,
    OF_ACTOR,
    SEEDS,
    build,
    cells_of,
    keys_of,
    rows_of,
    stands_once,
    swapped,
)

MEANS = ("ood6", "ood_ccg")


def exchanged(cells, field, one, other):
    """The cells as they must be when two names of a field of their keys are exchanged; a dash where there was none."""
    names = {one: other, other: one}
    return {
        key: cells.get(key._replace(**{field: names.get(getattr(key, field), getattr(key, field))}), "---")
        for key in cells
    }


def pairs_of(name):
    keys = keys_of(name)
    methods = [of.name for of in CASES[name].layout.methods]
    found = [("method", *pair) for pair in dict.fromkeys((tuple(methods[:2]), tuple(methods[-2:])))]
    for field in ("backbone", "dataset", "subset"):
        found += [(field, *pair) for pair in combinations(dict.fromkeys(getattr(key, field) for key in keys), 2)]
    return found


@pytest.mark.parametrize(
    ("name", "field", "one", "other"), [(name, *pair) for name in CASES for pair in pairs_of(name)]
)
def test_swapped_names_exchange_their_cells_and_leave_all_others(name, field, one, other):
    keys = [key for key in keys_of(name) if key.metric not in DERIVED]
    rows = rows_of(name)
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
    rows = rows_of(name)
    tables = [build(name, rows), build(name, swapped(rows, "seed", one, other))]
    shown = CASES[name].layout.backbones[0].seeds
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

"""The finished smoke study after edits, which each test undoes; and the micro study in a shared store."""

import os
from pathlib import Path

import pytest

from dualread.apps import main as program
from dualread.store.graph import keys_below, reachable
from dualread.store.store import Store
from tests.workflow.checkout import Checkout
from tests.workflow.faults import MICRO, STUDY

pytestmark = pytest.mark.long

TABLES = ("tables/main.tex", "tables/main.csv", "tables/cascade.tex", "tables/cascade.csv")
# All actors and methods go into these, and every kind of what is made of several: tables of metrics, of costs and of
# contrasts, a figure, and the records.
FROM_ALL = (
    *(f"tables/{name}.tex" for name in ("main", "costs", "controls", "significance", "intervals", "cascade")),
    "figures/forest.png",
    "results/smoke/records/MANIFEST.json",
)


def contents(checkout: Checkout) -> dict[str, bytes]:
    return {name: (checkout.folder / name).read_bytes() for name in TABLES}


def test_a_shared_store_is_used_and_gc_keeps_what_is_needed(micro, monkeypatch, tmp_path):
    target = f"{MICRO}/metrics/qwen3-vl-tiny/rlvr/17/dualread/MANIFEST.json"
    other = Checkout.create(tmp_path / "other")
    monkeypatch.chdir(micro.folder)
    assert program.main(["verify", "tables/main.tex"]) == 0
    assert program.main(["store", "copy", "results/store", str(tmp_path / "shared"), "--of", MICRO]) == 0
    monkeypatch.chdir(other.folder)
    assert program.main(["store", "copy", str(tmp_path / "shared"), "results/store"]) == 0
    run = other.snakemake(target, study=STUDY)
    assert run.returncode == 0, run.text
    assert run.computed() == set()
    store = Store(Path("results/store"))
    for path in store.root.rglob("*"):
        os.utime(path, (0, 0))  # what was written within the last hour would stay
    before = set(store.stored_keys())
    assert program.main(["gc", "--delete"]) == 0
    assert set(store.stored_keys()) == set(reachable(keys_below(Path("results"), store), store)) < before
    assert program.main(["verify", target]) == 0
    assert other.snakemake(target, study=STUDY).did_nothing()


def test_a_seed_that_is_removed_and_added_again_recomputes_nothing(study):
    before = contents(study)
    study.edit("workflow/studies/smoke.yaml", "seeds: [17, 29]", "seeds: [29]")
    run = study.snakemake(*FROM_ALL)
    assert run.returncode == 0, run.text
    of_several = {"collect_metrics", "compare_methods", "measure_difficulty", "export_records"}
    assert {"build_table"} < run.computed() <= of_several | {"build_table", "draw_figure"}
    study.edit("workflow/studies/smoke.yaml", "seeds: [29]", "seeds: [17, 29]")
    run = study.snakemake(*FROM_ALL)
    assert run.returncode == 0, run.text
    assert run.entries("computed") == set()
    assert contents(study) == before


def test_a_selection_of_data_sets_trains_nothing(study):
    """The leakage check of all data sets holds for some of them."""
    jobs = study.snakemake("-n", "tables/main.tex", study="workflow/studies/smoke.yaml workflow/selections/slake.yaml")
    assert jobs.returncode == 0, jobs.text
    assert not {name for name in jobs.jobs() if name.startswith(("check_leakage", "pretrain", "train", "generate"))}

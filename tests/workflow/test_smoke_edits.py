"""The finished smoke study after edits, in another store, on another number of cores; each test undoes its edits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dualread.apps import main as program
from dualread.store.graph import keys_below, reachable
from dualread.store.store import Store
from tests.workflow.checkout import Checkout

pytestmark = pytest.mark.rest


TABLES = ("tables/main.tex", "tables/main.csv", "tables/cascade.tex", "tables/cascade.csv")
# All actors and methods go into these, and every kind of what is made of several: tables of metrics, of costs and of
# contrasts, a figure, and the records.
SHOWING = ("main", "costs", "controls", "significance", "intervals")
FROM_ALL = (
    *(f"tables/{name}.tex" for name in (*SHOWING, "cascade")),
    "figures/forest.png",
    "results/smoke/records/MANIFEST.json",
)


def contents(checkout: Checkout) -> dict[str, bytes]:
    return {name: (checkout.folder / name).read_bytes() for name in TABLES}


def test_a_shared_store_is_used_and_gc_keeps_what_is_needed(study, monkeypatch, tmp_path):
    target = "results/smoke/metrics/qwen3-vl-tiny/rlvr/29/dualread/MANIFEST.json"
    other = Checkout.create(tmp_path / "other")
    monkeypatch.chdir(study.folder)
    assert program.main(["verify", "tables/main.tex"]) == 0
    assert program.main(["store", "copy", "results/store", str(tmp_path / "shared"), "--of", "results/smoke"]) == 0
    monkeypatch.chdir(other.folder)
    assert program.main(["store", "copy", str(tmp_path / "shared"), "results/store"]) == 0
    run = other.snakemake(target)
    assert run.returncode == 0, run.text
    assert run.computed() == set()
    store = Store(Path("results/store"))
    for path in store.root.rglob("*"):
        os.utime(path, (0, 0))  # what was written within the last hour would stay
    before = set(store.stored_keys())
    assert program.main(["gc", "--delete"]) == 0
    assert set(store.stored_keys()) == set(reachable(keys_below(Path("results"), store), store)) < before
    assert program.main(["verify", target]) == 0
    assert other.snakemake(target).did_nothing()


def test_a_lock_restores_the_tables_after_all_keys_have_changed(study, tmp_path):
    other = Checkout.create(tmp_path)
    other.append("lib/dualread/data/datasets/slake.py", "\nEDITED = True\n")
    lock, environment = study.folder / "results/smoke/results.lock", {"PYTHONPATH": str(other.folder / "lib")}
    for words in (
        ["store", "copy", study.folder / "results/store", "results/store", "--of", lock],
        ["store", "restore", lock],
        ["verify", "restored/tables/main.tex"],
    ):
        command = [
            sys.executable,
            "-c",
            "import sys; from dualread.apps.main import main; sys.exit(main())",
            *words,
        ]
        done = subprocess.run(
            command, cwd=other.folder, env={**os.environ, **environment}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    for name, there in contents(study).items():
        assert (other.folder / "restored" / name).read_bytes().partition(b"\n")[2] == there.partition(b"\n")[2]
    run = other.snakemake("results/smoke/manifests/slake/train/MANIFEST.json")
    assert run.computed() == {"build_manifest"}, run.text


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


NEW_METHOD = '''"""A new method of a user: longer questions are harder."""

import numpy as np

from dualread.readers.base import Scores


def score(reader, answers):
    confidence = 1 / answers.table["question_key"].str.len_chars().to_numpy()
    return Scores(score=confidence, confidence=confidence, imputed=np.zeros(len(answers), dtype=bool))
'''


@pytest.mark.long  # test_additions.py adds methods to the micro study
def test_a_new_method_is_one_file_and_one_entry_and_appears_in_the_tables(study):
    before = contents(study)
    entry = "methods:\n  brevity: {label: Brevity, group: Mine, actor: rlvr, reader: brevity}\n"
    (study.folder / "lib/dualread/readers/brevity.py").write_text(NEW_METHOD)
    study.edit("workflow/studies/smoke.yaml", "methods:\n", entry)
    run = study.snakemake(*FROM_ALL)
    assert run.returncode == 0, run.text
    for table in SHOWING:
        assert "Brevity" in (study.folder / f"tables/{table}.tex").read_text()
    made = {path for stage, path in run.entries("computed")}
    of_several = (
        "metrics",
        "metrics_of/rlvr",
        "contrasts",
        "contrasts_of/rlvr",
        "records",
        "difficulty/rlvr",
        "figures/forest",
    )
    assert all(
        path.endswith("/brevity") or path in of_several or path.startswith(("tables/", "answers/")) for path in made
    ), made
    study.edit("workflow/studies/smoke.yaml", entry, "methods:\n")
    (study.folder / "lib/dualread/readers/brevity.py").unlink()
    assert study.snakemake().returncode == 0
    assert contents(study) == before


@pytest.mark.long  # test_never_stale.py computes the micro study's training again, and all that follows
def test_a_new_store_and_another_number_of_cores_give_the_same_bytes(study, tmp_path):
    """Computes one actor from nothing, on one core, and compares the digests of all files of all artifacts."""
    other = Checkout.create(tmp_path)
    run = other.snakemake("results/smoke/metrics/qwen3-vl-tiny/rlvr/29/dualread/MANIFEST.json", cores=1)
    assert run.returncode == 0, run.text
    made = sorted(path.relative_to(other.folder) for path in other.folder.glob("results/smoke/**/MANIFEST.json"))
    stages = {json.loads((other.folder / path).read_text())["stage"] for path in made}
    assert {"pretrain_base", "train_actor", "generate", "replay", "fit_readers", "compute_metrics"} <= stages
    assert any("views" in path.parts for path in made)
    for path in made:
        assert (other.folder / path).read_bytes() == (study.folder / path).read_bytes(), path

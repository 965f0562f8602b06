"""The smoke study, from images to tables, run once (conftest.py); what it made, and what a second run makes."""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import yaml

from dualread.apps import main as program
from dualread.store.graph import keys_below, reachable
from dualread.store.store import Store
from tests.workflow.checkout import Checkout
from tests.workflow.faults import MICRO, STUDY
from tests.workflow.recomputed import inside, jobs

pytestmark = pytest.mark.rest


def test_the_figures_exist_and_name_their_study(study):
    assert (study.folder / "figures/training.pdf").read_bytes().startswith(b"%PDF")
    assert (study.folder / "figures/training.png").read_bytes().startswith(b"\x89PNG")
    assert "\nsmoke,qwen3-vl-tiny,rlvr,17,reward,1," in (study.folder / "figures/training.csv").read_text()


def test_the_report_shows_every_table(study):
    page = (study.folder / "results/smoke/report.html").read_text()
    for table in (study.folder / "tables").glob("*.tex"):
        assert f'<article id="table-{table.stem}"' in page


def test_a_printed_number_is_explained_down_to_its_questions(study, monkeypatch, capsys):
    monkeypatch.chdir(study.folder)
    assert program.main(["explain", "tables/main.tex", "--cell", "qwen3-vl-tiny,dualread,slake,auroc"]) == 0
    printed = capsys.readouterr().out
    assert "as recomputed from the metrics below" in printed
    stages = ("compute_metrics", "score_answers", "fit_readers", "replay", "grade", "generate", "train_actor")
    for stage in (*stages, "pretrain_base", "probe_checkpoint", "build_manifest"):
        assert f": {stage} " in printed, stage
    assert "    confidence of dualread: " in printed


def test_the_table_of_settings_counts_the_defaults_of_trainings(study):
    """They are in the classes of the plugins that train, which the table loads by a computed name."""
    with inside(study.folder):
        (job,) = (job for job in jobs("smoke") if job.entry.output.name == "hparams")
    trained = {
        actor["training"] for actor in job.entry.spec["settings"]["config"]["actors"].values() if "training" in actor
    }
    assert trained
    assert {f"dualread.training.{name}" for name in trained} <= set(job.roots)


def test_a_finished_study_is_of_its_configuration(study, monkeypatch, capsys):
    """Its figures too, among which the forest draws methods that its own entry does not name."""
    monkeypatch.chdir(study.folder)
    for target in ("tables/main.tex", "results/smoke/figures/forest"):
        assert program.main(["verify", target]) == 0
        assert "; of this configuration" in capsys.readouterr().out
        assert program.main(["explain", target, "--again"]) == 0
        assert "nothing has changed" in capsys.readouterr().out


def test_the_best_trial_of_a_search_becomes_a_file_to_lay_over_the_study(study):
    """benchmarks/tune_reader.py."""
    words = ["bicr", "--configfile", "workflow/studies/smoke.yaml", "--seed", "17", "--trials", "2"]
    command = [sys.executable, str(study.folder / "benchmarks/tune_reader.py"), *words]
    environment = {"PYTHONPATH": str(study.folder / "lib"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=study.folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (found,) = yaml.safe_load((study.folder / "tuned/bicr.yaml").read_text())["methods"].values()
    trials = pl.read_csv(study.folder / "tuned/bicr.csv")
    best = trials.sort("validation_auroc", descending=True, maintain_order=True).row(0, named=True)
    assert found["settings"]["dropout"] == float(best["dropout"])
    assert {name: found["tuned_on"][name] for name in ("study", "data", "seed", "trials")} == {
        **{"study": "smoke", "data": "phantoms", "seed": 17, "trials": 2},
    }
    planned = study.snakemake("-n", "tables/hparams.tex", study="workflow/studies/smoke.yaml tuned/bicr.yaml")
    assert planned.returncode == 0, planned.text


def test_a_second_run_does_nothing(study):
    assert study.snakemake().did_nothing()


# After edits, which each test undoes; and the micro study in a shared store.
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
def test_a_selection_of_data_sets_trains_nothing(study):
    """The leakage check of all data sets holds for some of them."""
    jobs = study.snakemake("-n", "tables/main.tex", study="workflow/studies/smoke.yaml workflow/selections/slake.yaml")
    assert jobs.returncode == 0, jobs.text
    assert not {name for name in jobs.jobs() if name.startswith(("check_leakage", "pretrain", "train", "generate"))}


def test_an_edit_of_a_table_recomputes_only_that_table(study):
    study.append("lib/dualread/reporting/tables/cascade.py", "_UNUSED = 1\n")
    run = study.snakemake()
    assert run.returncode == 0, run.text
    assert run.entries("computed") == {("build_table", "tables/cascade")}

"""What happens around the jobs of a run; tests/workflow shows it in runs of Snakemake."""

import errno
from pathlib import Path
from types import SimpleNamespace

import pytest

from dualread.devices import ASSIGNED
from dualread.errors import ArtifactError
from dualread.schema.study import Config
from dualread.store.copy import LOCK_NAME, read_lock
from dualread.store.job import Entry
from dualread.store.place import last_plan, read_study
from dualread.store.store import Store
from dualread.study import run as study_run
from dualread.study import stale
from dualread.study.run import StudyRun
from tests.store.entries import grow_old, publish
from tests.study.small import small

RESULTS = "results/small"


@pytest.fixture
def run_of(tmp_path, monkeypatch):
    """Return a function that begins a run, which holds its lock until the test ends."""
    monkeypatch.chdir(tmp_path)
    runs = []
    yield lambda **options: runs.append(_run(**options)) or runs[-1]
    for run in runs:
        for lock in run._locks:
            lock.close()


def _run(*, dryrun=False, remote=False, **machine):
    """A run of the small study on one machine, or a job of it on another."""
    workflow = SimpleNamespace(
        is_main_process=not remote,
        _executor_plugin="local",
        overwrite_configfiles=[],
        rules=[],
        config_settings=SimpleNamespace(config={}),
        remote_exec=remote,
        output_settings=SimpleNamespace(dryrun=dryrun),
        resource_settings=SimpleNamespace(overwrite_resources={"grade": {"mem_mb": 5}}),
        global_resources={"_nodes": SimpleNamespace(value=None)},
        register_resource=lambda name, total: None,
    )
    study = {**small(), "study": "small", "store": "results/store", "machine": {**small()["machine"], **machine}}
    return StudyRun(workflow, Config.model_validate(study), RESULTS)


def test_jobs_have_one_thread_and_those_of_a_cluster_know_that_their_gpus_are_assigned(run_of):
    here, elsewhere = run_of().exports, run_of(remote=True).exports
    assert here.startswith("export OMP_NUM_THREADS=1 ")
    assert ASSIGNED not in here
    assert elsewhere == here.replace("; ", f" {ASSIGNED}=1; ")


def test_jobs_are_told_who_watches_trainings_and_no_spec_is(run_of):
    plain, watched = run_of().exports, run_of(report_to=["trackio", "wandb"], samples_every=10).exports
    assert "DUALREAD" not in plain
    told = "DUALREAD_SAMPLES_EVERY=10 DUALREAD_REPORT_TO=trackio,wandb DUALREAD_RESULTS=results/small"
    assert watched == plain.replace("; ", f" {told}; ")


def test_a_file_where_a_folder_has_to_be_stops_the_run_before_it_is_planned(run_of):
    Path("tables").write_text("")
    with pytest.raises(ArtifactError, match=r"^tables: is not a folder, but results go there\."):
        run_of().before_planning()


@pytest.mark.parametrize("dryrun", [True, False])
def test_damaged_results_are_repaired_before_a_run_and_left_alone_by_a_dry_run(run_of, dryrun, capsys):
    publish(Store(Path("results/store")), "grade", {"a": "1"}, output=Path(RESULTS, "graded"))
    file, manifest = Path(RESULTS, "graded/a"), Path(RESULTS, "graded/MANIFEST.json")
    file.unlink()
    run_of(dryrun=dryrun).before_planning()
    assert (manifest.exists(), file.exists()) == (True, not dryrun)
    assert ("damaged result" in capsys.readouterr().err) == (not dryrun)


def test_a_result_that_a_job_of_a_lost_run_shows_while_the_next_is_planned_is_not_taken_for_its_own(
    run_of, monkeypatch
):
    index = SimpleNamespace(digest=lambda roots: "c" * 64, packages=lambda roots: {"polars": "2.1.0"})
    monkeypatch.setattr(stale, "library", lambda cache: index)
    store, output, run = Store(Path("results/store")), Path(RESULTS, "graded"), run_of()
    publish(store, "grade", {"a": "1"}, output=output)
    grow_old(output, 100)
    job = SimpleNamespace(rule=SimpleNamespace(name="grade"), wildcards={}, output=[f"{output}/MANIFEST.json"])
    run._workflow.dag = SimpleNamespace(jobs=[job])
    run.jobs("grade", "grade", lambda wildcards: ({}, [{"spec": {}, "inputs": {}, "output": str(output)}]), None)
    run.before_planning()
    assert run._outdated() == []
    publish(store, "grade", {"a": "2"}, spec={"steps": 6}, output=output)
    assert run._outdated() == job.output


def test_jobs_are_forked_without_the_packages_of_what_the_store_has(run_of, monkeypatch):
    index = SimpleNamespace(digest=lambda roots: "c" * 64, packages=lambda roots: {"polars": "2.1.0"})
    monkeypatch.setattr(stale, "library", lambda cache: index)
    asked: list = []
    monkeypatch.setattr(study_run, "start_forkserver", lambda *given, is_found: asked.append(is_found))
    for name in ("start_jobs_at_once", "prefer"):
        monkeypatch.setattr(study_run.insides, name, lambda *given: None)
    monkeypatch.setattr(study_run.insides, "jobs_here", lambda *given: [])
    publish(Store(Path("results/store")), "grade", {"a": "1"})
    places = [{"spec": spec, "output": f"{RESULTS}/{name}"} for name, spec in (("graded", {}), ("other", {"n": 1}))]
    run = run_of()
    job = SimpleNamespace(rule=SimpleNamespace(name="grade"), wildcards={}, output=[])
    run._workflow.dag = SimpleNamespace(jobs=[job])
    run.jobs("grade", "grade", lambda wildcards: ({}, places), None)
    run.before_planning()
    run._outdated()
    run.begin([])
    assert [asked[0](Entry.of(place, {})) for place in places] == [True, False]


def test_a_run_that_ends_names_its_results_and_one_that_cannot_says_so(run_of, capsys):
    manifest = publish(Store(Path("results/store")), "grade", {"a": "1"}, output=Path(RESULTS, "graded"))
    run_of().end()
    assert read_lock(Path(RESULTS, LOCK_NAME)).targets["graded"]["key"] == manifest.key
    Path(RESULTS, "graded/MANIFEST.json").write_text("{")
    run_of().end()
    assert capsys.readouterr().err.startswith("warning: results.lock was not written: ")


def test_what_a_plan_notes_is_what_was_asked_for_whatever_rules_do_with_the_study(run_of, monkeypatch):
    monkeypatch.setattr(study_run.insides, "jobs_of", lambda workflow: [])
    run, settings = run_of(), small()["methods"]
    run._study.methods.clear()
    run._outdated()
    assert list(read_study(Path(RESULTS))["settings"]["methods"]) == list(settings)


def test_a_dry_run_leaves_what_it_planned_apart(run_of, monkeypatch):
    monkeypatch.setattr(study_run.insides, "jobs_of", lambda workflow: [])
    run_of()._outdated()
    noted = read_study(Path(RESULTS))
    assert last_plan(Path(RESULTS)) == Path(RESULTS)
    run_of(dryrun=True, report_to=["wandb"])._outdated()
    assert read_study(Path(RESULTS)) == noted
    assert last_plan(Path(RESULTS)) == Path(RESULTS, "dry_run")
    assert read_study(Path(RESULTS, "dry_run")) != noted
    run_of()._outdated()
    assert last_plan(Path(RESULTS)) == Path(RESULTS)


def test_a_plan_that_cannot_be_written_is_one_sentence(run_of, monkeypatch, capsys):
    monkeypatch.setattr(study_run.insides, "jobs_of", lambda workflow: [])

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device", "results/small/.study.json.1")

    monkeypatch.setattr(study_run, "write_study", full)
    with pytest.raises(SystemExit, match="no space left on the device"):
        run_of()._outdated()

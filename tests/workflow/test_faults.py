"""Faults: after each, the next run gives the same bytes as an undisturbed study, and reports what it found."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dualread.apps import main as program
from tests.workflow.checkout import Checkout
from tests.workflow.faults import (
    MICRO,
    STUDY,
    TABLES,
    artifacts,
    assert_same,
    copy,
    faulty,
    flip,
    forget,
    killed,
    mounting,
    run,
    stored,
    truncate,
)

pytestmark = pytest.mark.rest

ACTOR = f"{MICRO}/actors/qwen3-vl-tiny/rlvr/17/MANIFEST.json"
GRADED = f"{MICRO}/graded/qwen3-vl-tiny/rlvr/17/slake/train/original/MANIFEST.json"
FEATURES = f"{MICRO}/features/qwen3-vl-tiny/rlvr/17/slake/test/original/MANIFEST.json"
RACED = ("replay", "fit_readers", "score_answers", "compute_metrics")


@pytest.fixture
def checkout(micro: Checkout, tmp_path: Path) -> Checkout:
    return copy(micro, tmp_path / "checkout")


@pytest.fixture
def recovers(micro: Checkout):
    """Run again, compare everything with the undisturbed study, and return the output of the run."""

    def check(checkout: Checkout, *arguments: str, **options):
        done = run(checkout, *arguments, **options)
        assert done.returncode == 0, done.text
        assert_same(checkout, micro)
        return done

    return check


def shards(run, stage: str, outcome: str) -> int:
    return sum(made == stage for made, _ in run.entries(outcome))


@pytest.mark.long
def test_a_study_that_is_killed_five_times_ends_with_the_same_bytes(tmp_path, recovers):
    """Killed in training, generation, replay, publication and the writing of a table, and each time more is lost."""
    checkout = Checkout.create(tmp_path)
    # Killed while it writes its third checkpoint; and a disk spoils the second one.
    killed(checkout, stage="train_actor", event="open", path="checkpoint-3/trainer_state.json$")
    (kept,) = checkout.folder.glob("results/store/partial/*/checkpoint-2")
    flip(kept / "model.safetensors")
    # In the middle of the third of four shards: its five images are hashed before the second of them is encoded.
    done = killed(
        checkout, stage="generate", event="open", path="manifests/slake/test/images/", count=7, victim="group"
    )
    assert f"{kept.parent.name}/checkpoint-2/model.safetensors: damaged" in done.text
    assert f"{kept.parent.name}/checkpoint-3: half-written" in done.text
    assert f"resuming from results/store/partial/{kept.parent.name}/checkpoint-1" in done.text
    # In the middle of the second of four shards.
    done = killed(checkout, stage="replay", event="open", path="manifests/slake/validation/images/", count=6)
    assert (shards(done, "generate", "hit"), shards(done, "generate", "computed")) == (2, 2)
    assert "this job was killed" in done.text
    # A reader that is written, and not yet published.
    done = killed(checkout, stage="fit_readers", event="os.rename", path="store/tmp/", count=2, victim="group")
    assert (shards(done, "replay", "hit"), shards(done, "replay", "computed")) == (1, 3)
    # Half of a table's files.
    done = killed(checkout, stage="build_table", event="open", path="store/tmp/.*/main.csv$", victim="group")
    assert (shards(done, "fit_readers", "hit"), shards(done, "fit_readers", "computed")) == (1, 4)
    done = recovers(checkout)
    assert done.computed() <= {"build_table"}
    assert list(checkout.folder.glob("results/store/tmp/*")) == []
    assert list(checkout.folder.glob("results/store/partial/*")) == []


def test_an_edit_during_a_run_stops_the_jobs_that_were_planned_without_it(checkout, recovers):
    """Otherwise results of two codes are mixed, which nobody notices once the edit is undone."""
    fitted = forget(checkout, "fit_readers")
    targets = [*fitted, *forget(checkout, "score_answers", "compute_metrics")]
    metric, before, after = "lib/dualread/evaluation/metrics/selective.py", "CONFIDENCE = 0.9", "CONFIDENCE = 0.6"

    def edit():
        while not any((checkout.folder / target).exists() for target in fitted):
            time.sleep(0.01)
        checkout.edit(metric, before, after)

    editing = threading.Thread(target=edit, daemon=True)
    editing.start()
    done = run(checkout, *targets)
    editing.join(60)
    assert done.returncode != 0
    assert "the code or the settings of compute_metrics changed after this run was planned" in done.text
    checkout.edit(metric, after, before)
    assert recovers(checkout, *targets).computed() == {"compute_metrics"}


@pytest.mark.long
def test_when_the_server_that_forks_jobs_is_killed_the_run_goes_on(checkout, micro):
    server = str(checkout.folder / "lib/dualread/store/forkserver.py")
    targets = forget(checkout, "fit_readers", "score_answers", "compute_metrics")
    fault = {"stage": "fit_readers", "event": "os.rename", "path": "store/tmp/"}
    done = faulty(checkout, *targets, **fault, victim="server")
    assert "the process that had forked this job was killed; the job starts again" in done.text
    assert done.returncode == 0, done.text
    assert_same(checkout, micro)
    assert list(checkout.folder.glob("results/store/tmp/*")) == []
    wait_for_the_end_of(server)
    killed(checkout, *forget(checkout, "fit_readers"), **fault, victim="group")
    wait_for_the_end_of(server)  # nor does it outlive a Snakemake that was killed


def wait_for_the_end_of(program):
    for _ in range(300):
        if not subprocess.run(["pgrep", "-f", program], capture_output=True).stdout:
            return
        time.sleep(0.1)
    raise AssertionError(f"{program} still runs")


def test_a_kill_while_a_result_is_linked_leaves_nothing_that_looks_finished(checkout, recovers):
    targets = artifacts(checkout, "measure_costs")
    for target in targets:
        shutil.rmtree((checkout.folder / target).parent)
    killed(checkout, *targets, stage="measure_costs", event="os.link", path="store/", count=2, victim="group")
    done = recovers(checkout, *targets)
    assert done.computed() == set()


def test_a_kill_of_everything_while_a_table_is_copied_leaves_no_half_table(checkout, recovers):
    tools = checkout.folder / "tools"
    tools.mkdir()
    (tools / "cat").write_text('#!/bin/sh\nhead -c 100 "$1"\nkill -9 0\n')
    (tools / "cat").chmod(0o755)
    (checkout.folder / TABLES[0]).unlink()
    done = run(checkout, environment={"PATH": f"{tools}:{os.environ['PATH']}"})
    assert done.returncode != 0
    shutil.rmtree(tools)
    recovers(checkout)


def test_a_damaged_copy_of_a_table_is_named_and_replaced(checkout, recovers):
    tex, csv = (checkout.folder / name for name in ("tables/main.tex", "tables/data.csv"))
    truncate(tex)
    flip(csv)
    damaged = tex.read_bytes(), csv.read_bytes()
    assert run(checkout, "-n").returncode == 0
    assert (tex.read_bytes(), csv.read_bytes()) == damaged  # a dry run mends nothing
    said = recovers(checkout).text
    (named,) = (line for line in said.splitlines() if line.startswith("made again, because they differ"))
    assert all(str(path.relative_to(checkout.folder)) in named for path in (tex, csv))


@pytest.mark.long
def test_two_runs_race_for_the_same_keys_in_a_shared_store(micro, tmp_path, recovers):
    """In two checkouts, both make the same from the states to the metrics, each on one core, in another store."""
    shared = tmp_path / "shared"
    (tmp_path / "study.yaml").write_text(f"store: {shared}\n")
    pair = [copy(micro, tmp_path / name) for name in "ab"]
    for checkout in pair:
        targets = forget(checkout, *RACED)
    subprocess.run(["cp", "-a", pair[0].folder / "results/store", shared], check=True)
    study = f"{STUDY} {tmp_path / 'study.yaml'}"
    said = {}

    def race(checkout):
        said[checkout.folder] = recovers(checkout, *targets, study=study, cores=1)

    threads = [threading.Thread(target=race, args=(checkout,)) for checkout in pair]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 2  # neither failed, and both have the bytes of a study without a race, and on two cores
    assert set(RACED) <= set.union(*(done.computed() for done in said.values()))
    assert not (shared / "differences.jsonl").exists()
    assert list(shared.glob("tmp/*")) == []


FULL = """
cp -a results/store held; mount -t tmpfs -o size=64m none results/store; cp -a held/. results/store
dd if=/dev/zero of=results/store/full bs=4k 2>/dev/null || true
"""


def test_a_full_disk_and_a_limit_on_file_sizes_are_reported_and_cost_one_artifact(checkout, recovers):
    """At the first write: of a text file by Python, or of a parquet file by polars."""
    environment = {**os.environ, "PYTHONPATH": str(checkout.folder / "lib")}

    def is_full(stage, within):
        job = min(checkout.folder.glob(f"{MICRO}/jobs/{stage}/*.json"))
        command = [*within, sys.executable, "-m", "dualread.store.run", stage, job]
        done = subprocess.run(command, cwd=checkout.folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 1
        assert f"[{stage}] error: results/store: no space left on the device" in done.stderr
        assert "Traceback" not in done.stderr
        shutil.rmtree(checkout.folder / "held", ignore_errors=True)

    full = mounting(FULL.strip())
    targets = forget(checkout, "build_table")
    is_full("build_table", full)
    targets += forget(checkout, "collect_metrics")
    is_full("collect_metrics", full)
    is_full("collect_metrics", ["bash", "-c", 'ulimit -f 8; exec "$@"', "bash"])
    assert recovers(checkout, *targets).computed() == {"build_table", "collect_metrics"}


def after(checkout, *stages):
    """Remove the tables and what some late stages made, so that all of it has to be computed from what is left."""
    shutil.rmtree(checkout.folder / "tables")
    return forget(checkout, *stages, "compute_metrics", "collect_metrics", "build_table")


def test_all_damage_is_reported_and_repaired_before_anything_is_computed_from_it(checkout, recovers):
    after(checkout, "score_answers")
    shard, other = (checkout.folder / path for path in (FEATURES, GRADED))
    (states,) = shard.parent.glob("*.safetensors")
    flip(states)
    truncate(other.parent / "graded.parquet")
    pairs, manifest = (checkout.folder / MICRO / name for name in ("pairs/slake/test", "manifests/slake/test"))
    truncate(pairs / "MANIFEST.json")
    flip(manifest / "MANIFEST.json")
    shutil.rmtree(stored(checkout, GRADED.replace("train", "validation")))  # an entry deleted by hand: its links stand
    older = checkout.folder / GRADED.replace("train/original", "test/donor").replace("MANIFEST.json", "graded.parquet")
    copied = older.read_bytes()[::-1]
    older.unlink()
    older.write_bytes(copied)  # of the same size, in the place of the link into the store, and older than all else
    os.utime(older, (1e9, 1e9))
    secret = (checkout.folder / GRADED.replace("train", "test")).with_name("graded.parquet")
    flip(secret, secretly=True)  # it keeps size and time
    replaced = shard.parent.with_name("donor")  # by a whole result with other times and another key
    shutil.rmtree(replaced)
    subprocess.run(["cp", "-a", shard.parents[2] / "validation/original", replaced], check=True)
    done = recovers(checkout)
    started = done.text.index("Building DAG")
    manifests = (pairs / "MANIFEST.json", manifest / "MANIFEST.json")
    for path in (states, other.parent / "graded.parquet", *manifests, older, secret, replaced):
        assert f"damaged result: {path.relative_to(checkout.folder)}: " in done.text[:started], path
    computed = {path for stage, path in done.entries("computed") if stage in ("replay", "grade", "generate")}
    run_of = "qwen3-vl-tiny/rlvr/17/slake"
    graded = (f"graded/{run_of}/{split}/original" for split in ("train", "test"))
    assert computed == {f"features/{run_of}/test/original", *graded}
    assert len(list(checkout.folder.glob("results/store/damaged/*"))) == 3


def test_a_file_deleted_from_results_that_no_job_needs_comes_back(checkout, recovers):
    """The tables are there, so Snakemake would not make the reader again: it is linked from the store."""
    (reader,) = checkout.folder.glob(f"{MICRO}/readers/*/*/*/dualread/reader.safetensors")
    before = reader.read_bytes()
    reader.unlink()
    assert recovers(checkout).did_nothing()
    assert reader.read_bytes() == before


@pytest.mark.long
def test_deleted_entries_of_the_store_are_restored(checkout, recovers, monkeypatch):
    """One entry can be restored from a result; the other cannot, but no target needs it while the tables exist."""
    monkeypatch.chdir(checkout.folder)
    shutil.rmtree(stored(checkout, ACTOR))
    pairs = f"{MICRO}/pairs/slake/test/MANIFEST.json"
    shutil.rmtree(gone := stored(checkout, pairs))
    shutil.rmtree(Path(pairs).parent)
    done = run(checkout)
    assert done.did_nothing()
    assert "the store lacked 1 entries, such as results/store/" in done.text
    assert stored(checkout, ACTOR).is_dir()
    assert program.main(["verify", TABLES[0]]) == 1
    assert recovers(checkout, pairs).computed() == {"pair_donors"}
    assert gone.is_dir()
    assert program.main(["verify", TABLES[0]]) == 0


@pytest.mark.long
def test_a_read_only_store_serves_its_entries_and_refuses_new_ones(checkout, recovers):
    within = mounting("mount --bind results/store results/store; mount -o remount,bind,ro results/store")
    shutil.rmtree(checkout.folder / "tables")
    shutil.rmtree(checkout.folder / MICRO / "tables")
    assert recovers(checkout, within=within).computed() == set()  # as links of another kind
    forget(checkout, "build_table")
    shutil.rmtree(checkout.folder / "tables")
    done = run(checkout, within=within)
    assert done.returncode != 0
    assert "results/store: cannot write into the store (Read-only file system" in done.text
    assert "Traceback" not in done.text
    recovers(checkout)


@pytest.mark.long
def test_a_clock_that_was_set_back_by_a_day_stops_nothing(checkout, recovers):
    """Everything written before has a time in the future."""
    tomorrow = time.time() + 86400
    for path in [*checkout.folder.glob("results/**/*"), *checkout.folder.glob("tables/*")]:
        os.utime(path, (tomorrow, tomorrow), follow_symlinks=False)
    after(checkout)
    assert recovers(checkout).computed() == {"compute_metrics", "collect_metrics", "build_table"}
    assert run(checkout).did_nothing()


def test_official_files_replaced_by_older_ones_are_noticed(checkout, micro):
    official, target = checkout.folder / "official", f"{MICRO}/manifests/slake/test/MANIFEST.json"
    shutil.copytree(
        checkout.folder / MICRO / "phantoms/slake", official, ignore=shutil.ignore_patterns("MANIFEST.json")
    )
    (checkout.folder / "official.yaml").write_text("datasets: {slake: {source: {phantom: null, folder: official}}}\n")

    def made():
        done = checkout.snakemake(target, study=f"{STUDY} official.yaml")
        assert done.returncode == 0, done.text
        return done.entries("computed"), json.loads((checkout.folder / target).read_text())["files"]

    questions = official / "test.json"
    text = questions.read_text()
    assert made()[1] == json.loads((micro.folder / target).read_text())["files"]  # the very bytes of the phantom's
    questions.chmod(0o644)
    questions.write_text(json.dumps(json.loads(text)[1:]))
    os.utime(questions, (1e9, 1e9))
    computed, files = made()
    assert computed == {("build_manifest", "manifests/slake/test")}
    assert files != json.loads((micro.folder / target).read_text())["files"]
    questions.write_text(text)
    os.utime(questions, (9e8, 9e8))
    computed, files = made()
    assert (computed, files) == (set(), json.loads((micro.folder / target).read_text())["files"])

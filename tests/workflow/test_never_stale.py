"""What a finished study has is never taken for what it would be now, whatever Snakemake remembers or has lost."""

import base64
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dualread.apps import main as program
from tests.once import once
from tests.workflow.checkout import Checkout
from tests.workflow.faults import (
    EDITS,
    MICRO,
    STUDY,
    TABLES,
    artifacts,
    assert_same,
    copy,
    killed,
    run,
    stored,
)

pytestmark = pytest.mark.rest

ACTOR = f"{MICRO}/actors/qwen3-vl-tiny/rlvr/17/MANIFEST.json"
TRAINING = "a setting of training"


def _make_edited(folder: Path) -> None:
    checkout = Checkout.create(folder)
    EDITS[TRAINING](checkout)
    assert run(checkout).returncode == 0


@pytest.fixture(scope="session")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A run from nothing with another training; no test edits it."""
    return Checkout(folder=once(tmp_path_factory, "another training", _make_edited))


@pytest.fixture
def alone(micro: Checkout, tmp_path: Path) -> Checkout:
    return copy(micro, tmp_path / "checkout")


@pytest.fixture
def checkout(alone: Checkout, edited: Checkout) -> Checkout:
    """A finished study whose store has the artifacts of the other training too, so that jobs need not compute them."""
    for part in (edited.folder / "results/store").glob("??"):
        subprocess.run(["cp", "-a", "--no-clobber", part, alone.folder / "results/store"], check=True)
    return alone


def must_compute(checkout: Checkout, stage: str, edited: Checkout) -> None:
    """Remove the artifacts of one stage of the other training from the store."""
    store = edited.folder / "results/store"
    for target in artifacts(edited, stage):
        shutil.rmtree(checkout.folder / "results/store" / stored(edited, target).relative_to(store))


def ends_as(checkout: Checkout, edited: Checkout) -> None:
    """Run again: the bytes are those of a run from nothing, and there is no third run."""
    done = run(checkout)
    assert done.returncode == 0, done.text
    assert "train_actor" in {stage for stage, _ in done.entries("computed") | done.entries("hit")}
    assert_same(checkout, edited)
    assert run(checkout).did_nothing()


def records(checkout: Checkout) -> list[Path]:
    return list((checkout.folder / ".snakemake/metadata").iterdir())


def refused(checkout: Checkout, job: Path) -> None:
    """Run a training of an earlier run, which has outlived it."""
    command = [sys.executable, "-m", "dualread.store.run", "train_actor", str(job.relative_to(checkout.folder))]
    environment = {**os.environ, "PYTHONPATH": str(checkout.folder / "lib")}
    done = subprocess.run(command, cwd=checkout.folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "a later run makes something else here" in done.stderr


def test_after_touch(alone, edited):
    EDITS[TRAINING](alone)
    assert run(alone, "--touch").returncode == 0
    assert "train_actor" in run(alone, "-n").jobs()
    ends_as(alone, edited)


@pytest.mark.parametrize(
    "which",
    [
        pytest.param(ACTOR, id="of an actor", marks=pytest.mark.long),
        pytest.param(TABLES[0], id="of a table", marks=pytest.mark.long),
        pytest.param("", id="all"),
    ],
)
def test_after_records_of_snakemake_were_lost(checkout, edited, which):
    lost = [file for file in records(checkout) if base64.urlsafe_b64decode(file.name).decode().startswith(which)]
    assert lost
    for file in lost:
        file.unlink()
    assert run(checkout).did_nothing()
    EDITS[TRAINING](checkout)
    ends_as(checkout, edited)


def test_with_times_as_the_only_trigger(checkout, edited):
    EDITS[TRAINING](checkout)
    assert "train_actor" in run(checkout, "-n", "--rerun-triggers=mtime").jobs()


@pytest.mark.parametrize("removed", [pytest.param(True, marks=pytest.mark.long), False])
def test_after_a_failed_job_whose_run_noted_nothing(checkout, edited, removed):
    """As where the job was killed for lack of memory, and then the terminal closed: Snakemake took it for finished."""
    kept = {file: file.read_bytes() for file in records(checkout)}
    made = (checkout.folder / ACTOR).read_bytes()
    must_compute(checkout, "train_actor", edited)
    EDITS[TRAINING](checkout)
    killed(checkout, stage="train_actor", event="os.rename", path="store/tmp/")
    for file, text in kept.items():
        file.write_bytes(text)
    if not removed:
        (checkout.folder / ACTOR).write_bytes(made)
    shutil.rmtree(checkout.folder / ".snakemake/incomplete", ignore_errors=True)
    ends_as(checkout, edited)


@pytest.mark.long
def test_an_edit_taken_back_after_a_failed_job(checkout, micro, edited):
    before = (checkout.folder / STUDY).read_text()
    must_compute(checkout, "generate", edited)
    EDITS[TRAINING](checkout)
    killed(checkout, stage="generate", event="os.rename", path="store/tmp/", victim="group")
    (checkout.folder / STUDY).write_text(before)
    done = run(checkout)
    assert done.returncode == 0, done.text
    assert done.computed() == set()
    assert_same(checkout, micro)


@pytest.mark.long
def test_no_job_of_an_earlier_run_shows_its_result(checkout, micro, edited):
    """Its head was killed, and the training was edited: it ends after the next run."""
    before = (checkout.folder / STUDY).read_text()
    (job,) = checkout.folder.glob(f"{MICRO}/jobs/train_actor/*.json")
    EDITS[TRAINING](checkout)
    ends_as(checkout, edited)
    refused(checkout, job)
    assert_same(checkout, edited)
    # A run of this training began and was killed before its job did; then the edit was taken back: nothing is to do.
    planned = (checkout.folder / MICRO / "planned.json").read_text()
    job = max(checkout.folder.glob(f"{MICRO}/jobs/train_actor/*.json"), key=lambda file: file.stat().st_mtime_ns)
    (checkout.folder / STUDY).write_text(before)
    assert run(checkout).returncode == 0
    (checkout.folder / MICRO / "planned.json").write_text(planned)
    assert run(checkout).did_nothing()
    refused(checkout, job)
    assert_same(checkout, micro)


def test_a_second_run_beside_the_first_is_refused(checkout):
    """Also with --nolock, with which Snakemake would let both replace what the other is about to read."""
    before = (checkout.folder / STUDY).read_text()
    with (checkout.folder / MICRO / "running").open("a") as running:
        fcntl.flock(running, fcntl.LOCK_EX)
        EDITS[TRAINING](checkout)
        done = run(checkout, "--nolock", "--forceall")
        assert done.returncode == 1
        assert "another run of this study is at work here" in done.text
        assert "Traceback" not in done.text
        assert "train_actor" in run(checkout, "-n", "--nolock").jobs()
        assert run(checkout, "--summary").returncode == 0
    (checkout.folder / STUDY).write_text(before)
    done = run(checkout)
    assert done.returncode == 0, done.text
    assert done.computed() == set()


def test_an_older_copy_of_a_table_of_another_study_is_replaced(checkout, micro):
    """And of the preview, of which no line names a study; without a record, and with a newer time."""
    for file in records(checkout):
        file.unlink()
    tex, preview = (checkout.folder / "tables" / name for name in ("main.tex", "preview.txt"))
    shutil.rmtree(checkout.folder / "tables")
    assert checkout.snakemake(*TABLES, "tables/preview.txt", study=STUDY).returncode == 0
    right = tex.read_bytes(), preview.read_bytes()
    (checkout.folder / "results/other").mkdir()
    tex.write_text("% study: other\n")
    preview.write_text("of another study\n")
    assert checkout.snakemake(*TABLES, "tables/preview.txt", study=STUDY).returncode == 0
    assert (tex.read_bytes(), preview.read_bytes()) == right


def test_a_table_of_another_study_is_replaced_where_this_one_has_lost_its_results(checkout, micro):
    tex = checkout.folder / "tables/main.tex"
    (checkout.folder / "results/other").mkdir()
    tex.write_text("% study: other\n")
    shutil.rmtree(checkout.folder / MICRO)
    assert {"build_table", "copy_table"} <= set(run(checkout, "-n").jobs())
    assert run(checkout).returncode == 0
    assert tex.read_bytes() == (micro.folder / "tables/main.tex").read_bytes()


def test_verify_names_what_is_not_of_this_configuration(checkout, monkeypatch, capsys):
    monkeypatch.chdir(checkout.folder)
    assert run(checkout, "-n", "--config=store=../elsewhere").returncode == 0
    assert program.main(["verify", TABLES[0]]) == 0
    assert "; of this configuration" in capsys.readouterr().out
    EDITS[TRAINING](checkout)
    assert run(checkout, "-n").returncode == 0
    assert program.main(["verify", TABLES[0]]) == 0
    assert "changed since" in capsys.readouterr().out
    assert program.main(["explain", TABLES[0], "--again"]) == 0
    said = capsys.readouterr().out
    assert f"train_actor {Path(ACTOR).parent}:" in said
    assert "steps: 3 -> 2" in said


def test_verify_is_right_where_a_producer_was_made_again_with_equal_bytes(alone, monkeypatch, capsys):
    """Shares that give the ten training images the same roles: the manifest is equal, and no actor is made again."""
    roles = "{train: {fit: 0.71, stop: 0.1, calibration: 0.19}}"
    alone.edit(STUDY, "\nconditions:", f"\ndatasets: {{slake: {{roles: {roles}}}}}\nconditions:")
    done = run(alone)
    assert done.returncode == 0, done.text
    assert ("build_manifest", "manifests/slake/train") in done.entries("computed")
    assert "train_actor" not in done.computed()
    monkeypatch.chdir(alone.folder)
    for target in (*TABLES, str(Path(ACTOR).parent)):
        assert program.main(["verify", target]) == 0
        said = capsys.readouterr().out
        assert "; of this configuration" in said
        assert "changed since" not in said
        assert program.main(["explain", target, "--again"]) == 0
        assert "nothing has changed" in capsys.readouterr().out
    Path(ACTOR).unlink()  # as a kill and a revert leave it; nothing has to read it again
    assert run(alone).did_nothing()
    assert program.main(["verify", TABLES[0]]) == 0
    assert "; of this configuration" in capsys.readouterr().out

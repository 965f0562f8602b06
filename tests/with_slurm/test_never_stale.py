"""Edits before, between and after lost jobs, nodes and heads, with the profile's `retries: 1`.

The same command again then gives the tables of a run from nothing, and at no point does `verify` call other tables
those of the present configuration.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.with_slurm.cluster import call, wait_until
from tests.workflow.checkout import Checkout
from tests.workflow.faults import EDITS, REMOVALS, STUDY, TABLES, assert_same, copy, draw_edits, run

_SECONDS = 300
TRAINING = "a setting of training"


@pytest.fixture
def checkout(micro, tmp_path: Path) -> Checkout:
    return copy(micro, tmp_path / "checkout")


@pytest.fixture
def fresh(tmp_path: Path) -> Checkout:
    return Checkout.create(tmp_path / "fresh")


@pytest.fixture
def start(slurm, submit):
    """A function that starts Snakemake for the tables; jobs that outlive a test are ended."""
    yield lambda checkout, *options: submit(checkout, *TABLES, *options, study=STUDY, files=())
    call("scancel", "--user=root")
    wait_until(slurm.is_idle, "the end of all jobs")


def from_nothing(fresh: Checkout) -> dict[str, bytes]:
    """Run the study on this machine, from nothing, as it is now; return its tables."""
    for made in ("results", "tables", ".snakemake"):
        shutil.rmtree(fresh.folder / made, ignore_errors=True)
    done = run(fresh)
    assert done.returncode == 0, done.text
    return {table: (fresh.folder / table).read_bytes() for table in TABLES}


def verify_is_truthful(checkout: Checkout, right: dict[str, bytes]) -> None:
    for table in TABLES:
        if not (checkout.folder / table).exists():
            continue
        environment = {**os.environ, "PYTHONPATH": str(checkout.folder / "lib")}
        command = [sys.executable, "-m", "dualread", "verify", table]
        done = subprocess.run(command, cwd=checkout.folder, env=environment, capture_output=True, text=True)
        said = done.stdout + done.stderr
        is_right = (checkout.folder / table).read_bytes() == right[table]
        assert "damaged or missing" not in said, said
        assert "Traceback" not in said, said
        assert is_right or "; of this configuration" not in said, said


def ends_as(checkout: Checkout, fresh: Checkout, start) -> None:
    """Give the same command again."""
    right = from_nothing(fresh)
    verify_is_truthful(checkout, right)
    head = start(checkout)
    assert head.wait() == 0, head.text
    assert_same(checkout, fresh)
    verify_is_truthful(checkout, right)
    assert run(checkout).did_nothing()


def processes(checkout: Checkout) -> list[int]:
    """Return the processes in which stages run for a checkout."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"dualread.store.run" in (folder / "cmdline").read_bytes() and (folder / "cwd").samefile(
                checkout.folder
            ):
                found.append(int(folder.name))
        except OSError:
            continue  # it has just ended
    return found


def kill_a_process(slurm, checkout: Checkout, drawn: random.Random) -> None:
    """As the system does where memory is used up."""
    if found := processes(checkout):
        os.kill(drawn.choice(sorted(found)), signal.SIGKILL)


def cancel_a_job(slurm, checkout: Checkout, drawn: random.Random) -> None:
    if found := sorted(slurm.jobs()):
        call("scancel", drawn.choice(found))


def requeue_a_job(slurm, checkout: Checkout, drawn: random.Random) -> None:
    if found := sorted(slurm.jobs()):
        call("scontrol", "requeue", drawn.choice(found))


def lose_the_node(slurm, checkout: Checkout, drawn: random.Random) -> None:
    slurm.lose_node(with_its_jobs=drawn.random() < 0.5)
    time.sleep(drawn.uniform(0, 6))
    slurm.return_node()


FAULTS = (kill_a_process, cancel_a_job, requeue_a_job, lose_the_node)


@pytest.mark.parametrize("lost", ["kill", "hang_up"])
def test_a_job_that_failed_once_and_a_head_that_is_lost_before_the_retry_ends(slurm, start, checkout, fresh, lost):
    for each in (checkout, fresh):
        EDITS[TRAINING](each)
    right = from_nothing(fresh)
    head = start(checkout)
    wait_until(lambda: slurm.jobs("train_actor") and processes(checkout), "the training", _SECONDS)
    (first,) = slurm.jobs("train_actor")
    os.kill(processes(checkout)[0], signal.SIGKILL)
    wait_until(lambda: set(slurm.jobs("train_actor")) - {first}, "another job", _SECONDS)
    getattr(head, lost)()
    verify_is_truthful(checkout, right)
    ends_as(checkout, fresh, start)


def test_jobs_of_a_lost_head_that_were_queued_start_beside_those_of_the_next(slurm, start, checkout, fresh):
    """The settings were edited in between."""
    EDITS[TRAINING](checkout)
    call("scontrol", "update", "partitionname=gpu", "state=down")
    try:
        lost = start(checkout)
        wait_until(lambda: not slurm.is_idle(), "a queued job", _SECONDS)
        lost.kill()
        EDITS[TRAINING](fresh)
        for each in (checkout, fresh):
            EDITS["a loss"](each)
            each.edit(STUDY, "steps: 2,", "steps: 1,")
        head = start(checkout)
        wait_until(lambda: len(call("squeue", "--noheader").splitlines()) > 1, "a queued job of both", _SECONDS)
    finally:
        call("scontrol", "update", "partitionname=gpu", "state=up")
    assert head.wait() == 0, head.text
    wait_until(slurm.is_idle, "the end of both", _SECONDS)
    ends_as(checkout, fresh, start)


def test_a_job_that_outlives_its_head_leaves_the_results_of_the_next_alone(slurm, start, checkout, fresh):
    """It ends, and is refused, when the next run reads what that has in its place; Snakemake would remove that."""
    EDITS[TRAINING](checkout)
    lost = start(checkout)
    wait_until(lambda: slurm.jobs("train_actor") and processes(checkout), "the training", _SECONDS)
    (orphan,) = slurm.jobs("train_actor")
    call("scontrol", "suspend", orphan)
    lost.kill()
    EDITS[TRAINING](fresh)
    for each in (checkout, fresh):
        each.edit(STUDY, "steps: 2,", "steps: 1,")
    head = start(checkout)
    wait_until(lambda: slurm.jobs("generate"), "answers of the next actor", _SECONDS)
    call("scontrol", "resume", orphan)
    wait_until(lambda: orphan not in slurm.jobs(), "the end of the first training", _SECONDS)
    assert head.wait() == 0, head.text
    ends_as(checkout, fresh, start)


@pytest.mark.parametrize("seed", range(1, 4))
def test_random_edits_and_losses(slurm, start, checkout, fresh, seed):
    """Three runs, of which each loses a job or its node, and then its head; edits come at any time."""
    drawn = random.Random(seed)
    edits = draw_edits(seed=seed, number=4, among=EDITS.keys() - REMOVALS)

    def perhaps_edit() -> None:
        if edits and drawn.random() < 0.5:
            edit = edits.pop()
            edit(checkout)
            edit(fresh)

    for _ in range(3):
        perhaps_edit()
        head = start(checkout)
        wait_until(lambda head=head: slurm.jobs() or not head.runs, "a job", _SECONDS)
        time.sleep(drawn.uniform(0, 6))
        perhaps_edit()
        drawn.choice(FAULTS)(slurm, checkout, drawn)
        perhaps_edit()
        time.sleep(drawn.uniform(0, 15))
        drawn.choice([head.kill, head.hang_up])()
        verify_is_truthful(checkout, from_nothing(fresh))
    for edit in edits:
        edit(checkout)
        edit(fresh)
    ends_as(checkout, fresh, start)

"""A killed job, or a killed head whose jobs continue: the same command resumes, and two writers of a key do no harm."""

import json

import pytest

from tests.with_slurm.cluster import call, wait_until
from tests.with_slurm.conftest import SHARED, STUDY
from tests.workflow.checkout import Checkout

LONG = ("tests/with_slurm/long.yaml", *SHARED)
FOLDER = "results/cluster/actors/qwen3-vl-tiny/rlvr"
TARGETS = (f"{FOLDER}/17/MANIFEST.json", f"{FOLDER}/29/MANIFEST.json")
LOG = "results/cluster/logs/train_actor/qwen3-vl-tiny/rlvr/17.log"


@pytest.fixture(scope="module")
def checkout(store, tmp_path_factory):
    """A checkout whose base exists, so that only trainings are submitted."""
    checkout = Checkout.create(tmp_path_factory.mktemp("killed"))
    (checkout.folder / "store.yaml").write_text(f"store: {store}\n")
    run = checkout.snakemake(
        "results/cluster/actors/qwen3-vl-tiny/base/0/MANIFEST.json", study=" ".join([STUDY, *LONG])
    )
    assert run.returncode == 0, run.text
    return checkout


def training_of_17(slurm):
    """Return the job that is training seed 17, if there is one."""
    return next((job for job, about in slurm.jobs("train_actor").items() if about.endswith("_17")), None)


def says(log, words):
    """Return whether the log exists and contains the words."""
    return log.exists() and words in log.read_text()


def partly_trained(store):
    """Return the keys of trainings that have a checkpoint to resume from."""
    return {path.parent.name for path in store.glob("partial/*/checkpoint-*")}


def test_a_killed_job_is_reported_and_does_not_stop_the_others(slurm, submit, checkout, store):
    head = submit(checkout, *TARGETS, "--retries", "0", files=LONG)
    wait_until(lambda: len(partly_trained(store)) == 2, "a checkpoint of both actors", 300)
    call("scancel", training_of_17(slurm))
    assert head.wait() != 0
    assert f"{LOG}: this job was killed" in head.text
    assert not (checkout.folder / TARGETS[0]).exists()
    assert (checkout.folder / TARGETS[1]).exists()
    assert len(partly_trained(store)) == 1


def test_a_killed_job_is_submitted_once_more_and_ctrl_c_cancels_it(slurm, submit, checkout):
    log = checkout.folder / LOG
    log.unlink(missing_ok=True)
    head = submit(checkout, TARGETS[0], files=LONG)
    wait_until(lambda: says(log, "resuming from"), "the training resuming from its checkpoint", 300)
    killed = training_of_17(slurm)
    call("scancel", killed)
    wait_until(lambda: training_of_17(slurm) not in (None, killed), "another job", 300)
    head.interrupt()
    assert head.wait() != 0
    wait_until(slurm.is_idle, "the end of its job")


def test_the_job_of_a_killed_head_continues_and_a_second_writer_does_no_harm(slurm, submit, checkout, store):
    log = checkout.folder / LOG
    log.unlink(missing_ok=True)
    first = submit(checkout, TARGETS[0], files=LONG)
    wait_until(lambda: says(log, "resuming from"), "the training resuming from its checkpoint", 300)
    first.kill()
    orphan = training_of_17(slurm)
    assert orphan is not None
    call("scontrol", "suspend", orphan)  # so that it surely lives when the second one starts
    second = submit(checkout, TARGETS[0], files=LONG)
    wait_until(lambda: says(log, "is held by a running process"), "a second training", 300)
    call("scontrol", "resume", orphan)
    assert second.wait() == 0, second.text
    wait_until(slurm.is_idle, "the end of both", 300)
    # One resumed from a checkpoint and the other started from the beginning, with the same result.
    assert not (store / "differences.jsonl").exists()
    assert not partly_trained(store)
    key = json.loads((checkout.folder / TARGETS[0]).read_text())["key"]
    assert len(list(store.glob(f"??/{key}"))) == 1
    assert not list((store / "tmp").glob(f"{key}.*"))

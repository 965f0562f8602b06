"""Several jobs on the GPUs of this machine. The GPUs are pretended, and the jobs only say which ones they use."""

import os
import subprocess
import sys
import time
import uuid
from collections import Counter

import pytest

from dualread import devices
from tests.workflow.checkout import Checkout

pytestmark = pytest.mark.rest

# Instead of computing, a job notes when it begins and ends to use its GPUs.
PRETEND = """
def _pretend(stage, entries):
    import time
    from dualread.store.digest import MANIFEST_NAME
    from dualread.store.digest import replace_text
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if devices.held() else []
    for gpu in gpus:
        os.write(os.open(gpu, os.O_CREAT | os.O_APPEND | os.O_WRONLY), f"begin {stage} {os.getpid()}\\n".encode())
    time.sleep(0.7 if gpus else 0)
    for gpu in gpus:
        os.write(os.open(gpu, os.O_APPEND | os.O_WRONLY), f"end {stage} {os.getpid()}\\n".encode())
    for entry in entries:
        entry.output.mkdir(parents=True, exist_ok=True)
        replace_text(entry.output / MANIFEST_NAME, "{}")


def main("""
TRAINED = [f"results/embedded/actors/qwen3-vl-tiny/{actor}/17/MANIFEST.json" for actor in ("rlvr", "rlcr", "dcpo")]


@pytest.fixture
def two(tmp_path):
    names = [f"test-{uuid.uuid4()}" for _ in range(2)]
    yield names
    for name in names:
        (devices.FOLDER / f"{name}.lock").unlink(missing_ok=True)


@pytest.fixture
def pretending(tmp_path):
    """Return a function that makes a checkout whose jobs pretend."""

    def make(name):
        checkout = Checkout.create(tmp_path / name)
        checkout.edit("lib/dualread/store/run.py", "\ndef main(", PRETEND)
        checkout.edit("lib/dualread/store/run.py", "runner.run(entries)", "_pretend(options.stage, entries)")
        # Beside real GPUs, jobs that need one are not forked from a process with torch.
        checkout.edit("lib/dualread/store/layers.py", "any(path.exists() for path in _GPUS)", "True")
        checkout.append("config.yaml", "only: {datasets: [slake]}\n")  # no other has jobs on a GPU here
        return checkout

    return make


def snakemake(checkout, two, *options):
    words = ["--cores", "4", "--resources=model_slots=9", *options, "--", *TRAINED]
    return checkout.forked(words, {**os.environ, **variables(checkout, two)})


def variables(checkout, two):
    return {devices.VISIBLE: ",".join(two), "PYTHONPATH": str(checkout.folder / "lib"), "HF_HUB_OFFLINE": "1"}


def used(checkout, two):
    """[(begin or end, stage, process)] of each GPU, in the order of time."""
    files = [checkout.folder / name for name in two]
    return [[line.split() for line in f.read_text().splitlines()] if f.exists() else [] for f in files]


def alternate(lines):
    """Whether no job began to use a GPU before the one before it had ended."""
    return all(
        (first[0], second[0]) == ("begin", "end") and first[1:] == second[1:]
        for first, second in zip(lines[::2], lines[1::2], strict=True)
    )


def test_jobs_of_one_run_share_no_gpu_and_use_all_of_them(pretending, two):
    checkout = pretending("one")
    done = snakemake(checkout, two)
    assert done.returncode == 0, done.text
    one, other = used(checkout, two)
    assert alternate(one)
    assert alternate(other)
    stages = Counter(stage for begin, stage, _ in one + other if begin == "begin")
    assert stages == {"pretrain_base": 1, "probe_checkpoint": 1, "train_actor": 3}
    assert "train_actor" in {stage for _, stage, _ in one} & {stage for _, stage, _ in other}
    assert "waiting until" not in done.text  # Snakemake itself starts no more jobs than there are GPUs
    # Jobs of a cluster take none, and compare their code with the plan of the run. Whatever the scheduler is, Snakemake
    # runs a job on a cluster in the mode "remote".
    for name in two:
        (checkout.folder / name).unlink()
    done = snakemake(checkout, two, "--mode=remote", "--forceall")
    assert done.returncode == 0, done.text
    assert "train_actor" in done.text
    assert used(checkout, two) == [[], []]


def test_a_training_on_several_gpus_has_all_of_them(pretending, two):
    """Snakemake lowers a request for more than there are; the training then says how many processes are too many."""
    checkout = pretending("one")
    checkout.edit("config.yaml", "      group_size: 8 ", "      processes: 3\n      group_size: 8 ")
    done = snakemake(checkout, two)
    assert done.returncode == 0, done.text
    one, other = used(checkout, two)
    assert alternate(one)
    assert [line for line in one if line[1] == "train_actor"] == [line for line in other if line[1] == "train_actor"]


@pytest.mark.long  # tests/test_devices.py kills many jobs at once that take the same GPUs
def test_two_checkouts_at_once_share_no_gpu_even_if_one_is_killed(pretending, two):
    first, second = pretending("first"), pretending("second")
    for checkout in (first, second):
        for name in two:  # both write to the same files
            (checkout.folder / name).symlink_to(first.folder.parent / name)
    command = [sys.executable, "-m", "snakemake", "--cores", "4", "--resources", "model_slots=9", "--", *TRAINED]
    environment = {**os.environ, **variables(first, two)}
    with subprocess.Popen(
        command, cwd=first.folder, env=environment, start_new_session=True, stderr=subprocess.DEVNULL
    ) as killed:
        while not any(used(first, two)) and killed.poll() is None:
            time.sleep(0.05)
        os.killpg(killed.pid, 9)
    done = snakemake(second, two)
    assert done.returncode == 0, done.text
    again = snakemake(first, two)
    assert again.returncode == 0, again.text
    for lines in used(first, two):
        finished = {process for word, _, process in lines if word == "end"}
        assert alternate([line for line in lines if line[2] in finished])


def test_one_gpu_runs_one_model_at_a_time(pretending, two):
    checkout = pretending("one")
    assert snakemake(checkout, two[:1]).returncode == 0
    lines, nothing = used(checkout, two)
    assert len(lines) == 10  # pretraining, its probe, and three trainings begin and end
    assert alternate(lines)
    assert nothing == []


def test_a_machine_without_gpus_limits_and_takes_none(pretending, two):
    checkout = pretending("one")
    done = snakemake(checkout, [])
    assert done.returncode == 0, done.text
    assert used(checkout, two) == [[], []]

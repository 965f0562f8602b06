"""GPUs are pretended by CUDA_VISIBLE_DEVICES, whose names no other test run uses."""

import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid

import pytest

from dualread import devices
from dualread.errors import ConfigError

HOLD = """
import sys, time
from dualread.devices import taken
import os
with taken(int(sys.argv[1])):
    print("took", os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def two(monkeypatch):
    """The names of two GPUs, which processes started here may use."""
    names = [f"test-{uuid.uuid4()}" for _ in range(2)]
    monkeypatch.setenv(devices.VISIBLE, ",".join(names))
    yield names
    for name in names:
        (devices.FOLDER / f"{name}.lock").unlink(missing_ok=True)


@pytest.fixture
def start():
    """Start a process that takes GPUs, says which, and holds them until its input ends or it is killed."""
    started = []

    def run(n, program=HOLD, folder=None, **variables):
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(n)],
            stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=folder, env={**os.environ, **variables},
        )  # fmt: skip
        started.append(process)
        return process

    yield run
    for process in started:
        with process:
            process.kill()


def took(process):
    """The GPUs that the process took; waits until it has taken them."""
    [word, *names] = process.stdout.readline().split()
    assert word == "took"
    return names[0].split(",")


def waits(process):
    """Wait until the process says that it waits."""
    assert process.stderr.readline().startswith("waiting until ")


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("0,1", ["0", "1"]),
        (" 3 , GPU-5a ", ["3", "GPU-5a"]),
        ("", []),
        ("-1", []),
        ("2,-1,3", ["2"]),  # CUDA ignores what follows an invalid entry
        ("0,,1", ["0"]),
        ("1,1", ["1"]),
    ],
)
def test_the_visible_gpus_are_those_of_cuda(monkeypatch, given, names):
    monkeypatch.setenv(devices.VISIBLE, given)
    assert devices.gpus() == names


@pytest.fixture
def nvidia_smi(monkeypatch, tmp_path):
    """Pretend that the program nvidia-smi prints a text."""
    devices._identities.cache_clear()

    def write(text, status=0):
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\ncat <<'TEXT'\n{text}\nTEXT\nexit {status}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        monkeypatch.delenv(devices.VISIBLE, raising=False)

    yield write
    devices._identities.cache_clear()


def test_without_the_variable_all_gpus_of_the_machine_count(nvidia_smi):
    nvidia_smi("0, GPU-aaaa\n1, GPU-bbbb")
    assert devices.gpus() == ["0", "1"]
    devices._identities.cache_clear()
    nvidia_smi("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", status=9)
    assert devices.gpus() == []


def test_the_number_and_the_identity_of_a_gpu_are_one_gpu(nvidia_smi, start, monkeypatch):
    one, other = f"GPU-{uuid.uuid4()}", f"GPU-{uuid.uuid4()}"
    nvidia_smi(f"0, {one}\n1, {other}")
    with devices.taken(1):
        assert (os.environ[devices.VISIBLE], os.environ["CUDA_DEVICE_ORDER"]) == ("0", "PCI_BUS_ID")
        waiting = start(1, **{devices.VISIBLE: one})
        waits(waiting)
    assert took(waiting) == [one]
    assert devices.VISIBLE not in os.environ
    for name in (one, other):
        (devices.FOLDER / f"{name}.lock").unlink(missing_ok=True)


def test_a_machine_without_gpus_and_a_cluster_change_nothing(monkeypatch, two, start):
    first = start(2)
    assert took(first) == two
    monkeypatch.setenv(devices.ASSIGNED, "1")
    with devices.taken(2):
        assert os.environ[devices.VISIBLE] == ",".join(two)
        assert devices.held() == []
    monkeypatch.delenv(devices.ASSIGNED)
    monkeypatch.setenv(devices.VISIBLE, "")
    with devices.taken(1):
        assert os.environ[devices.VISIBLE] == ""


def test_more_gpus_than_there_are_is_an_error_and_no_endless_wait(two):
    with pytest.raises(ConfigError, match=r"asks for 3 GPUs, but may use 2 \(test-"), devices.taken(3):
        pass


def test_jobs_have_different_gpus_and_the_next_one_waits(two, start):
    first, second = start(1), start(1)
    of_first = took(first)
    assert sorted(of_first + took(second)) == sorted(two)
    third = start(1)
    waits(third)
    first.stdin.close()
    assert took(third) == of_first
    assert first.wait() == 0


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_any_death_frees_a_gpu_and_nothing_else_does(two, start, end):
    first = start(2)
    took(first)
    second = start(2)
    waits(second)
    first.send_signal(end)
    if end == signal.SIGSTOP:
        time.sleep(2 * devices._POLL_SECONDS)
        assert second.poll() is None
        first.kill()
    assert took(second) == two


def test_a_job_that_needs_several_takes_none_until_all_are_free(two, start):
    first = start(1)
    [one] = took(first)
    both = start(2)
    waits(both)
    third = start(1)
    assert took(third) == [name for name in two if name != one]
    first.stdin.close()
    third.stdin.close()
    assert took(both) == two


def test_many_jobs_at_once_with_kills_in_between_never_share_a_gpu(two, start, tmp_path):
    """Each job writes when it began and ended to use a GPU; those that are killed leave a begin without an end."""
    program = """
        import os, sys, time
        from pathlib import Path
        from dualread.devices import taken
        with taken(int(sys.argv[1])):
            names = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
            for name in names:
                Path(name).mkdir()  # fails if another job that lives is there
            time.sleep(0.1)
            if os.getpid() % 3 == 0:
                os.rename(names[0], names[0] + f".killed-{os.getpid()}")
                for name in names[1:]:
                    os.rmdir(name)
                os.kill(os.getpid(), 9)
            for name in names:
                os.rmdir(name)
    """
    jobs = [start(n, textwrap.dedent(program), folder=tmp_path) for n in (1, 2, 1, 1, 2, 1, 2, 1)]
    for job in jobs:
        _, said = job.communicate(timeout=120)
        assert job.returncode in (0, -9), said
    assert not [path for path in tmp_path.iterdir() if "killed" not in path.name]


def test_a_killed_job_holds_its_gpus_until_the_processes_that_compute_for_it_have_ended(two, start):
    """As the launcher of several training processes, and the processes of several engines, do."""
    program = """
        import os, subprocess, sys, time
        from dualread.devices import held, taken
        with taken(2):
            child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], pass_fds=held(),
                                     stdin=subprocess.PIPE if sys.argv[1] == "0" else None, stdout=subprocess.DEVNULL)
            print("took", os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
            os.kill(os.getpid(), 9)
    """
    first = start(2, textwrap.dedent(program))
    took(first)
    first.wait()
    second = start(2)
    waits(second)
    time.sleep(2 * devices._POLL_SECONDS)
    assert second.poll() is None
    first.stdin.close()  # the child's input
    assert took(second) == two

"""A real SLURM on this machine: Debian's munged, slurmctld and slurmd, and GPUs that are copies of /dev/null.

It has two nodes with two GPUs each, which are two daemons on this machine. Only the partition `nodes` has the second.

Its configuration has to lie in /etc/slurm, so a machine that belongs to a cluster is left alone.
"""

import ctypes
import os
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CONFIGURATION = Path("/etc/slurm")
WRITTEN = ("slurm.conf", "gres.conf", "cgroup.conf")
HOST = socket.gethostname().split(".")[0]
NODES = (HOST, f"{HOST}-2")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol")
_TIMEOUT_SECONDS = 60
# Every task of a job logs its start and its end: the time, its job's id, its node, the GPUs it may use, and its job's
# comment.
_TASK_SCRIPT = """#!/bin/sh
about=$(timeout 20 squeue --noheader --job "$SLURM_JOB_ID" --format=%k)
echo "{event} $(date +%s.%N) $SLURM_JOB_ID $SLURMD_NODENAME ${{CUDA_VISIBLE_DEVICES-none}} $about" >> {log}
"""


class NoCluster(Exception):
    """A cluster cannot be started here; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task of a job that has ended: when it ran, on which node and GPUs ("none" without one)."""

    job: str
    about: str
    node: str
    devices: str
    start: float
    end: float


@dataclass(kw_only=True)
class Cluster:
    """The running cluster; all its files except the configuration are in `folder`."""

    folder: Path
    node: subprocess.Popen

    def lose_node(self, *, with_its_jobs: bool) -> None:
        """Kill the node's daemon. Its jobs end as in a power cut, or go on as where the network alone is cut."""
        running = [int(row.split()[0]) for row in call("scontrol", "listpids").splitlines()[1:]] if self.jobs() else []
        self.node.kill()
        self.node.wait()
        for process in running if with_its_jobs else ():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        call("scontrol", "update", f"nodename={HOST}", "state=down", "reason=lost")

    def return_node(self) -> None:
        """Start the node's daemon again; SLURM starts the jobs that it had."""
        self.node = _start(self.folder, "slurmd", "-D", "-N", HOST)
        call("scontrol", "update", f"nodename={HOST}", "state=resume")
        wait_until(_takes_jobs, "a node that takes jobs")

    def tasks(self) -> list[Task]:
        """Return the tasks of all jobs so far whose start and end are known."""
        begun: dict[tuple[str, str, str], list[float]] = {}
        tasks = []
        for line in (self.folder / "tasks").read_text().splitlines():
            event, when, job, node, devices, about = [*line.split(maxsplit=5), ""][:6]
            if event == "starts":
                begun.setdefault((job, node, devices), []).append(float(when))
            elif starts := begun.get((job, node, devices)):
                tasks.append(
                    Task(job=job, about=about, node=node, devices=devices, start=starts.pop(), end=float(when))
                )
        return tasks

    def jobs(self, rule: str = "") -> dict[str, str]:
        """Return {job id: comment} of the running jobs of a rule, or of all rules."""
        rows = (
            row.split(maxsplit=1) for row in call("squeue", "--noheader", "--states=R", "--format=%i %k").splitlines()
        )
        return {row[0]: row[1] for row in rows if len(row) == 2 and row[1].startswith(f"rule_{rule}")}

    def is_idle(self) -> bool:
        """Return whether no job is waiting or running."""
        return not call("squeue", "--noheader").strip()


def call(*command: str) -> str:
    """Run a SLURM command, which may hang if a daemon has died, and return its output."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout


def wait_until(happened: Callable[[], object], what: str, seconds: float = _TIMEOUT_SECONDS) -> None:
    """Wait until `happened()` is true, for at most `seconds`.

    Raises:
        TimeoutError: It is still not true; the message names `what`.
    """
    end = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not after {seconds:.0f} seconds")
        time.sleep(0.3)


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Start a cluster whose files are in `folder`; afterwards end its jobs and its daemons, and remove what it wrote.

    Raises:
        NoCluster: SLURM is missing or configured already, or this is not root.
    """
    _check()
    for name in ("state", "dev", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir(parents=True)
    for number in range(2 * len(NODES)):
        os.mknod(folder / "dev" / f"gpu{number}", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    (folder / "tasks").touch()
    for event in ("starts", "ends"):
        script = folder / f"task_{event}"
        script.write_text(_TASK_SCRIPT.format(event=event, log=folder / "tasks"))
        script.chmod(0o755)
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    with ExitStack() as stack:
        stack.enter_context(_configuration(folder))
        munge = ("--key-file", "--socket", "--pid-file", "--log-file", "--seed-file")
        names = ("munge.key", "munge.socket", "munged.pid", "munged.log", "munge.seed")
        options = [word for option, name in zip(munge, names, strict=True) for word in (option, str(folder / name))]
        stack.callback(_end, _start(folder, "munged", "--foreground", "--force", *options))
        wait_until((folder / "munge.socket").exists, "munged's socket")
        stack.callback(_end, _start(folder, "slurmctld", "-D"))
        wait_until(_answers, "slurmctld's answer")
        running = Cluster(folder=folder, node=_start(folder, "slurmd", "-D", "-N", HOST))
        stack.callback(lambda: _end(running.node))
        stack.callback(_end, _start(folder, "slurmd", "-D", "-N", NODES[1]))
        wait_until(_takes_jobs, "a node that takes jobs")
        try:
            yield running
        finally:
            call("scancel", "--user=root")
            wait_until(running.is_idle, "the end of all jobs")


def _check() -> None:
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        raise NoCluster(
            f"{', '.join(missing)}: not installed. On Debian: apt-get install slurmctld slurmd slurm-client munge"
        )
    if (CONFIGURATION / "slurm.conf").exists():
        if not _is_left_by_a_killed_test():
            raise NoCluster(f"{CONFIGURATION / 'slurm.conf'}: this machine has a SLURM already, which is left alone.")
        for name in WRITTEN:
            (CONFIGURATION / name).unlink(missing_ok=True)
    if os.getuid() != 0:
        raise NoCluster(
            "slurmd starts jobs as their users, for which it has to be root. Run this as root, in a container."
        )


def _is_left_by_a_killed_test() -> bool:
    written = (CONFIGURATION / "slurm.conf").read_text()
    return written.splitlines()[0] == (HERE / "slurm.conf").read_text().splitlines()[0] and not _answers()


@contextmanager
def _configuration(folder: Path) -> Iterator[None]:
    """Write the configuration files, which must not exist yet, and remove them after the block."""
    text = (HERE / "slurm.conf").read_text()
    for name, value in {"@FOLDER@": str(folder), "@HOST@": HOST}.items():
        text = text.replace(name, value)
    files = (f"{folder}/dev/gpu[{2 * i}-{2 * i + 1}]" for i in range(len(NODES)))
    gpus = "".join(f"NodeName={node} Name=gpu File={file}\n" for node, file in zip(NODES, files, strict=True))
    texts = (text, gpus, "CgroupPlugin=cgroup/v1\n")
    is_new = not CONFIGURATION.exists()
    CONFIGURATION.mkdir(exist_ok=True)
    written = []
    try:
        for name, content in zip(WRITTEN, texts, strict=True):
            with (CONFIGURATION / name).open("x") as file:
                written.append(CONFIGURATION / name)
                file.write(content)
        yield
    finally:
        for path in written:
            path.unlink()
        if is_new:
            CONFIGURATION.rmdir()


def end_with_the_tests() -> None:
    """Have Linux end this process when the tests end, even if they are killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _start(folder: Path, *command: str) -> subprocess.Popen:
    """Start a daemon in the foreground."""
    with (folder / f"{command[0]}.out").open("a") as out:
        # In a new session, so that Ctrl-C only reaches the tests, which then end the jobs before the daemons.
        return subprocess.Popen(
            command,
            **{"stdout": out, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL, "start_new_session": True},
            preexec_fn=end_with_the_tests,
        )


def _end(process: subprocess.Popen) -> None:
    """End a daemon by its process id."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _takes_jobs() -> bool:
    states = call("sinfo", "--noheader", "--format=%t", "--Node", "--partition=nodes").split()
    return len(states) == len(NODES) and set(states) <= {"idle", "mix", "alloc"}


def _answers() -> bool:
    try:
        return "UP" in call("scontrol", "ping")
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return False

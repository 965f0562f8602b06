"""A real SLURM on this machine: Debian's munged, slurmctld and slurmd, and two GPUs that are copies of /dev/null.

Its configuration has to lie in /etc/slurm, so a machine that belongs to a cluster is left alone.
"""

import os
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CONFIGURATION = Path("/etc/slurm")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol")
_TIMEOUT_SECONDS = 60
# Every task of a job logs its start and its end: the time, its job's id, the GPUs it may use, and its job's comment.
_TASK_SCRIPT = """#!/bin/sh
about=$(timeout 20 squeue --noheader --job "$SLURM_JOB_ID" --format=%k)
echo "{event} $(date +%s.%N) $SLURM_JOB_ID ${{CUDA_VISIBLE_DEVICES-none}} $about" >> {log}
"""


class NoCluster(Exception):
    """A cluster cannot be started here; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task of a job that has ended: when it ran, and on which GPUs ("none" without one)."""

    job: str
    about: str
    devices: str
    start: float
    end: float


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The running cluster; all its files except the configuration are in `folder`."""

    folder: Path

    def tasks(self) -> list[Task]:
        """Return the tasks of all jobs so far whose start and end are known."""
        begun: dict[tuple[str, str], list[float]] = {}
        tasks = []
        for line in (self.folder / "tasks").read_text().splitlines():
            event, when, job, devices, about = [*line.split(maxsplit=4), ""][:5]
            if event == "starts":
                begun.setdefault((job, devices), []).append(float(when))
            elif starts := begun.get((job, devices)):
                tasks.append(Task(job=job, about=about, devices=devices, start=starts.pop(), end=float(when)))
        return tasks

    def jobs(self, rule: str) -> dict[str, str]:
        """Return {job id: comment} of the running jobs of a rule."""
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
    for name in ("state", "spool", "dev"):
        (folder / name).mkdir(parents=True)
    for number in range(2):
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
        stack.enter_context(_daemon(folder, "munged", "--foreground", "--force", *options))
        wait_until((folder / "munge.socket").exists, "munged's socket")
        stack.enter_context(_daemon(folder, "slurmctld", "-D"))
        wait_until(_answers, "slurmctld's answer")
        stack.enter_context(_daemon(folder, "slurmd", "-D"))
        wait_until(lambda: call("sinfo", "--noheader", "--format=%t").split()[0] == "idle", "an idle node")
        running = Cluster(folder=folder)
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
        raise NoCluster(
            f"{CONFIGURATION / 'slurm.conf'}: this machine has a SLURM already, which is left alone. If its first line"
            " says that a killed test wrote it, remove it."
        )
    if os.getuid() != 0:
        raise NoCluster(
            "slurmd starts jobs as their users, for which it has to be root. Run this as root, in a container."
        )


@contextmanager
def _configuration(folder: Path) -> Iterator[None]:
    """Write the configuration files, which must not exist yet, and remove them after the block."""
    text = (HERE / "slurm.conf").read_text()
    for name, value in {"@FOLDER@": str(folder), "@HOST@": socket.gethostname().split(".")[0]}.items():
        text = text.replace(name, value)
    files = {
        "slurm.conf": text,
        "gres.conf": f"Name=gpu File={folder}/dev/gpu[0-1]\n",
        "cgroup.conf": "CgroupPlugin=cgroup/v1\n",
    }
    is_new = not CONFIGURATION.exists()
    CONFIGURATION.mkdir(exist_ok=True)
    written = []
    try:
        for name, content in files.items():
            with (CONFIGURATION / name).open("x") as file:
                written.append(CONFIGURATION / name)
                file.write(content)
        yield
    finally:
        for path in written:
            path.unlink()
        if is_new:
            CONFIGURATION.rmdir()


@contextmanager
def _daemon(folder: Path, *command: str) -> Iterator[None]:
    """Run a daemon in the foreground, and end it by its process id."""
    with (folder / f"{command[0]}.out").open("w") as out:
        # In a new session, so that Ctrl-C only reaches the tests, which then end the jobs before the daemons.
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers() -> bool:
    try:
        return "UP" in call("scontrol", "ping")
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return False

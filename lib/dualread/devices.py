"""The GPUs of this machine: which there are, and which of them a job has for itself.

A job that Snakemake starts on this machine takes as many GPUs as it asks for and sees no others; it waits while too few
are free. A GPU is taken by a lock on a file that is named after it, so that studies, checkouts and terminals of one
user know of each other. The kernel releases the lock when the last process that holds the file open ends, however it
ends.
"""

import contextlib
import fcntl
import itertools
import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import IO

from dualread.errors import ConfigError
from dualread.progress import say

VISIBLE = "CUDA_VISIBLE_DEVICES"
ASSIGNED = "DUALREAD_GPUS_ASSIGNED"  # set in the jobs of a cluster, whose scheduler assigns GPUs
# Not the folder for temporary files, which may be another one for each terminal and each job.
FOLDER = Path(f"/tmp/dualread-gpus-{os.getuid()}")

_POLL_SECONDS = 1.0
_NVIDIA_SMI_SECONDS = 60
_HELD: list[IO[str]] = []


def gpus() -> list[str]:
    """Return the names of the GPUs that this process may use; torch is not imported.

    They are those of the variable CUDA_VISIBLE_DEVICES if it is set, up to the first entry that names none (as CUDA
    reads it); otherwise those of the machine, numbered in the order of the PCI bus.
    """
    visible = os.environ.get(VISIBLE)
    if visible is None:
        return list(_identities())
    names = (name.strip() for name in visible.split(","))
    return list(dict.fromkeys(itertools.takewhile(lambda name: name and not name.startswith("-"), names)))


@contextlib.contextmanager
def taken(n: int) -> Iterator[None]:
    """Hold `n` of the GPUs that this process may use, and hide the others from it; wait until that many are free.

    Nothing is held and nothing changes where there are no GPUs, where a cluster assigns them, or where `n` is 0. A job
    that asks for several GPUs waits until all of them are free at once, and meanwhile takes none from jobs that ask for
    fewer.

    Raises:
        ConfigError: There are fewer than `n`.
    """
    if n == 0 or ASSIGNED in os.environ or not (names := gpus()):
        yield
        return
    if n > len(names):
        raise ConfigError(
            f"the job asks for {n} GPUs, but may use {len(names)} ({', '.join(names)}). Expected at most that many."
            f" Set the backbone's training.processes or the resource gpu to at most {len(names)}, or set {VISIBLE}."
        )
    before = {name: os.environ.get(name) for name in (VISIBLE, "CUDA_DEVICE_ORDER")}
    held = _wait(names, n)
    if before[VISIBLE] is None:
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # the order of our numbers; CUDA's own begins with the fastest
    os.environ[VISIBLE] = ",".join(held)
    _HELD.extend(held.values())
    try:
        yield
    finally:
        for file in held.values():
            _HELD.remove(file)
            file.close()
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def held() -> list[int]:
    """Return the file descriptors by which this process holds its GPUs.

    A process that computes for this one has to inherit them: it could outlive this one for a while.
    """
    return [file.fileno() for file in _HELD]


def _wait(names: Sequence[str], n: int) -> dict[str, IO[str]]:
    FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    waiting = False
    while len(files := _try(names, n)) < n:
        if not waiting:
            say(f"waiting until {n} of the GPUs {', '.join(names)} are free; other jobs use them")
        waiting = True
        time.sleep(_POLL_SECONDS)
    return files


def _try(names: Sequence[str], n: int) -> dict[str, IO[str]]:
    """Return the files of `n` GPUs that were free and are now held; none if fewer were free."""
    files: dict[str, IO[str]] = {}
    # One process tries at a time: otherwise two that need two GPUs could take one each, again and again.
    with (FOLDER / "trying.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        for name in names:
            identity = re.sub(r"[^\w.-]", "_", _identities().get(name, name))
            file = (FOLDER / f"{identity}.lock").open("w")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                continue
            files[name] = file
            if len(files) == n:
                return files
    for file in files.values():
        file.close()
    return {}


@cache
def _identities() -> dict[str, str]:
    """Return {number: identity} of this machine's GPUs; empty without NVIDIA's driver.

    One job may know a GPU by its number and another one by its identity.
    """
    command = ["nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, timeout=_NVIDIA_SMI_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    if listed.returncode:
        return {}
    rows = (line.split(", ") for line in listed.stdout.splitlines())
    return {row[0].strip(): row[1].strip() for row in rows if len(row) == 2 and row[0].strip().isdecimal()}

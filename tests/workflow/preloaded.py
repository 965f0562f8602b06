"""Snakemake in a process that has its packages already, and those of the jobs: each run would import them again.

To import torch, transformers and trl takes longer than a dry run. A process of its own does it once, with what
Snakemake and our rules import later, and forks two children per run: one becomes Snakemake, and the other waits until
it is asked to be the program that forks the jobs (`dualread.store.forkserver`). Neither has imported anything of
dualread. A run with variables of its own is not forked (`Checkout.snakemake`): there, all starts as it does for users.
"""

import gc
import json
import multiprocessing
import os
import runpy
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

OF_SNAKEMAKE = ("snakemake.cli", "snakemake.report", "smart_open", "requests", "yte", "polars", "pydantic")
OF_JOBS = ("scipy.stats", "matplotlib.pyplot", "sklearn.linear_model", "torch._dynamo", "trl", "peft")
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([*OF_SNAKEMAKE, *OF_JOBS])
_STARTS = threading.Lock()  # two runs may begin at once


def run_snakemake(words: Sequence[str], folder: Path, variables: Mapping[str, str], streams: Sequence[Path]) -> int:
    """Do what `python -m snakemake` does in `folder`, write into the files `streams`, and return the exit status."""
    with _STARTS, mock.patch.dict(os.environ, HF_HUB_OFFLINE="1"):  # which is read when it is imported
        forkserver.ensure_running()
    process = _CONTEXT.Process(target=_become_snakemake, args=(words, folder, dict(variables), streams))
    process.start()
    process.join()
    return process.exitcode


def _become_snakemake(words: list[str], folder: Path, variables: Mapping[str, str], streams: Sequence[Path]) -> None:
    from snakemake import cli

    assert "dualread" not in sys.modules
    gc.freeze()  # a collection need not visit all that was imported
    for number, stream in enumerate(streams, start=1):
        os.dup2(os.open(stream, os.O_CREAT | os.O_WRONLY | os.O_APPEND), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    others = [path for path in sys.path if path and not Path(path, "tests/workflow/preloaded.py").exists()]
    sys.path[:] = [str(folder), *variables["PYTHONPATH"].split(os.pathsep), *others]
    here, there = socket.socketpair()
    if os.fork() == 0:
        here.close()
        _become_server(there)
    there.close()
    from dualread.store import layers

    def start(command: Sequence[str], stdin: int, env: Mapping[str, str], pass_fds: Sequence[int], **_) -> object:
        """Ask the other child in place of starting the program."""
        read, write = os.pipe()
        asked = {"program": str(command[-1]), "environment": dict(env), "numbers": [*pass_fds]}
        socket.send_fds(here, [json.dumps(asked).encode()], [read, *pass_fds])
        os.close(read)
        return SimpleNamespace(stdin=os.fdopen(write, "wb"))

    layers.subprocess = SimpleNamespace(Popen=start, PIPE=subprocess.PIPE)
    cli.main(words)


def _become_server(connection: socket.socket) -> None:
    """Wait until a program is asked for, and become it; or end with Snakemake."""
    text, descriptors, _, _ = socket.recv_fds(connection, 2**20, 253)
    if not text:
        os._exit(0)
    asked = json.loads(text)
    # Above all numbers that they will have, before any is given.
    free = max(*descriptors, *asked["numbers"]) + 1
    moved = [os.dup2(descriptor, free + k) for k, descriptor in enumerate(descriptors)]
    os.closerange(3, free)
    for number, descriptor in zip([0, *asked["numbers"]], moved, strict=True):
        os.dup2(descriptor, number)
    os.closerange(free, free + len(moved))
    os.setsid()
    os.environ.clear()
    os.environ.update(asked["environment"])
    for name in ("LINES", "COLUMNS", "PS1", "PS2"):  # dropped by bash, through which the program is started
        os.environ.pop(name, None)
    del sys.path[0]  # as with -P
    sys.argv, sys.stdin = [asked["program"]], open(0, closefd=False)  # noqa: SIM115
    try:
        runpy.run_path(asked["program"], run_name="__main__")  # ends by itself, but for an error
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)

"""What the processes import that fork jobs (`forkserver`), and their start by Snakemake's process."""

import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from dualread.progress import say
from dualread.store.code import library, stage_roots
from dualread.store.forked import ADDRESS
from dualread.store.job import Entry, parse_job

# There is one process per layer of packages, so that a table does not wait for torch. A stage needs the last layer
# whose first package its code may import.
LAYERS = (
    ("polars", "numpy", "scipy", "PIL", "matplotlib"),
    ("torch", "transformers", "tokenizers", "safetensors", "sklearn"),
    ("trl", "datasets", "accelerate", "peft"),  # trl imports peft where it is installed
)
# What most jobs import later: the reader of specs, and parts of packages that these import when they are first used.
_LATER = {
    "polars": ("pydantic.type_adapter",),
    "scipy": ("scipy.optimize", "scipy.sparse"),
    "torch": ("torch._dynamo",),  # by every optimizer
}
# Some packages ask for a GPU when they are imported, and a process that has done so must not be forked. Beside a job
# that needs a GPU, the seconds of its imports do not count.
_GPUS = (Path("/dev/nvidiactl"), Path("/dev/kfd"))
_running: list[subprocess.Popen] = []  # keeps the pipes open
_alive: list[socket.socket] = []  # tell `forked` that this process runs


def start_forkserver(
    jobs: Iterable[tuple[str, Path]],
    sources: Path,
    environment: Mapping[str, str],
    is_found: Callable[[Entry], bool] = lambda entry: False,
) -> None:
    """Start the processes that fork the jobs of a run (stage and file), and let `forked` know their address.

    They end when this process ends. They need Linux. A job with other variables than `environment`, besides those of
    this process, is not forked. An entry that `is_found` in the store needs no packages.
    """
    stages: dict[str, set[str]] = {}  # the modules, or names in them, that each may import
    for stage, file in jobs:
        entries = [entry for entry in parse_job(file.read_text())[1] if not is_found(entry)]
        roots = {stage_roots(stage, entry.spec) for entry in entries}
        stages.setdefault(stage, set()).update(*map(library(sources).outside, roots))
    layers = LAYERS[:1] if any(path.exists() for path in _GPUS) else LAYERS
    needed = {}
    for stage, names in stages.items():
        packages = {name.partition(".")[0] for name in names}
        if (layer := max((n for n, (first, *_) in enumerate(LAYERS) if first in packages), default=0)) < len(layers):
            needed[stage] = layer
    if len(needed) < len(stages):
        say("jobs that may import torch are not forked, because this machine has a GPU")
    if sys.platform != "linux" or not needed:
        return
    address = f"dualread-{os.getpid()}-{secrets.token_hex(8)}"
    listeners = {stage: socket.socket(socket.AF_UNIX) for stage in needed}
    for stage, listener in listeners.items():
        listener.bind(f"\0{address}/{stage}")
        listener.listen(1024)  # jobs can connect from now on; they are answered when their layer is ready
    named = sorted({name for stage in needed for name in stages[stage]})
    named += [later for package, modules in _LATER.items() if package in named for later in modules]
    package_of = {later: package for package, modules in _LATER.items() for later in modules}
    plan = [
        {
            "modules": [name for name in named if package_of.get(name, name).partition(".")[0] in layers[number]],
            "listeners": [listeners[stage].fileno() for stage in needed if needed[stage] == number],
        }
        for number in range(max(needed.values()) + 1)
    ]
    os.environ[ADDRESS] = address
    _alive.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    _alive[-1].bind(f"\0{address}")
    # -P: not to import the modules beside it. Through bash, as jobs are, because it drops variables of terminals.
    command = [sys.executable, "-P", Path(__file__).with_name("forkserver.py")]
    process = subprocess.Popen(
        ["bash", "-c", 'exec "$@"', "bash", *command],
        start_new_session=True,  # what a terminal sends to this process, jobs get from `forked`
        stdin=subprocess.PIPE,
        env={**os.environ, **environment},
        pass_fds=[listener.fileno() for listener in listeners.values()],
    )
    _running.append(process)
    assert process.stdin is not None
    process.stdin.write(f"{json.dumps(plan)}\n".encode())
    process.stdin.flush()
    for listener in listeners.values():
        listener.close()

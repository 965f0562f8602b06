"""Several processes on one machine that train one actor together, each on a GPU of its own, or on CPUs without one.

`train_together` starts them and waits; `main` is what each of them runs:

    accelerate launch --num_processes N ... -m dualread.models.training.worker FILE

FILE is an `Assignment`. The first worker writes the trained checkpoint, and the train log beside FILE. Standard input
comes from the process that waits for the result, so that its end is noticed, however it dies.
"""

import json
import os
import select
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dualread.errors import ConfigError, DualReadError
from dualread.models.training.job import Assignment
from dualread.progress import say

_GRACE_SECONDS = 40  # the launcher itself gives its workers 30 seconds to end


def train_together(assignment: Assignment, n_processes: int) -> list[dict[str, Any]]:
    """Train on `n_processes` processes what `assignment.train` would train in this one; return the train log.

    Raises:
        ConfigError: The machine has GPUs, but fewer than processes.
        DualReadError: A worker failed; the message is its own.
    """
    import torch

    if 0 < (n_gpus := torch.cuda.device_count()) < n_processes:
        raise ConfigError(
            f"actor settings: processes: {n_processes}, but this machine has {n_gpus} GPUs. Expected one GPU a process."
        )
    file = assignment.scratch / "assignment.json"
    file.write_text(assignment.to_json())
    launch(__name__, file, n_processes)
    return json.loads(_log_file(file).read_bytes())


def launch(module: str, file: Path, n_processes: int) -> None:
    """Run `python -m module FILE` in `n_processes` processes that can talk to each other, until all are done.

    What they print is said here. Whatever ends the wait ends them.

    Raises:
        DualReadError: One failed: the message of its own error, or the last lines that were printed.
    """
    # --multi_gpu chooses torchrun as the launcher, which starts processes on CPUs just as well; --cpu would start one.
    # Port 0 is a free one.
    options = "--multi_gpu --num_machines 1 --mixed_precision no --dynamo_backend no --main_process_port 0"
    command = [sys.executable, "-m", "accelerate.commands.launch", *options.split()]
    command += ["--num_processes", str(n_processes), "-m", module, str(file)]
    last = deque(maxlen=80)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=_environment(), stdin=pipe, stderr=pipe, text=True, errors="replace") as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                last.append(line.rstrip())
                say(last[-1])
            code = process.wait()
        finally:
            _end(process)
    if code:
        # What nobody foresaw is among the last lines: tracebacks of the workers, then which of them failed first.
        failures = sorted(file.parent.glob("failure-*.txt"))
        reason = failures[0].read_text() if failures else f"exit status {code}; last lines:\n" + "\n".join(last)
        raise DualReadError(f"training on {n_processes} processes: {reason}")


def _environment() -> dict[str, str]:
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    if sys.platform == "linux":
        environment["GLOO_SOCKET_IFNAME"] = "lo"  # all on one machine: its name need not be known to any network
    return environment


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main(arguments: Sequence[str]) -> int:
    """Train as one of several processes."""
    file = Path(arguments[0])
    threading.Thread(target=_end_with_owner, args=(os.getppid(),), daemon=True).start()
    rank = os.environ["RANK"]
    try:
        log = Assignment.from_json(file.read_text()).train()
    except DualReadError as error:
        file.with_name(f"failure-{rank}.txt").write_text(str(error))
        return 1
    if rank == "0":
        _log_file(file).write_text(json.dumps(log))
    return 0


def _log_file(file: Path) -> Path:
    return file.with_name("log.json")


def _end_with_owner(launcher: int) -> None:
    """End this process when nobody waits for it: another run may take over the checkpoints that it writes."""
    while os.getppid() == launcher and not select.select([sys.stdin], [], [], 1.0)[0]:
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

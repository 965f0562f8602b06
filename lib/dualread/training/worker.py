"""Trains one actor in several processes with one GPU each, or on CPUs where there is no GPU.

`train_together` starts the processes and waits for them. Each of them runs `main`:

    accelerate launch --num_processes N ... -m dualread.training.worker FILE

On several nodes of a SLURM cluster, `srun` starts torchrun, which `accelerate launch` is as well, once on each node of
the job. FILE has to be in a folder that all of them see. The processes meet at a port of the node that waits.

FILE holds an `Assignment`. The first worker writes the trained checkpoint, and the train log to the folder of FILE. The
workers' standard input is a pipe from the waiting process: it is closed when that process ends for whatever reason, and
the workers then end, too.
"""

import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dualread import devices
from dualread.errors import ConfigError, DualReadError, in_a_line
from dualread.progress import say
from dualread.training.job import Assignment

_JOB_ID = "SLURM_JOB_ID"
_ANSWER_SECONDS = 60
_GRACE_SECONDS = 40  # the launcher itself gives its workers 30 seconds to end


def train_together(assignment: Assignment, n_processes: int, nodes: int = 1) -> list[dict[str, Any]]:
    """Train an actor on `n_processes` processes and return the train log."""
    import torch

    if 0 < (n_gpus := torch.cuda.device_count()) < n_processes // nodes:
        raise ConfigError(
            f"actor settings: processes: {n_processes}, but this machine has {n_gpus} GPU(s). Expected one GPU per"
            f" process. Set processes to at most {n_gpus * nodes}, or run on machines with more GPUs."
        )
    file = assignment.scratch / "assignment.json"
    file.write_text(assignment.to_json(), encoding="utf-8")  # in which JSON is read
    launch(__name__, file, n_processes, nodes)
    return json.loads(_log_file(file).read_bytes())


def launch(module: str, file: Path, n_processes: int, nodes: int = 1) -> None:
    """Run `python -m module FILE` in `n_processes` processes that can communicate, and wait until all are finished.

    Their output is printed here. If the wait is interrupted, the processes are ended. If one fails, its own error, or
    the last lines of the output, are that of a DualReadError.
    """
    if nodes == 1:
        # --multi_gpu selects the launcher torchrun, which works on CPUs, too; --cpu would start one process. The system
        # chooses a free port in place of 0.
        options = "--multi_gpu --num_machines 1 --mixed_precision no --dynamo_backend no --main_process_port 0"
        command = [sys.executable, "-m", "accelerate.commands.launch", *options.split()]
        command += ["--num_processes", str(n_processes)]
    else:
        command = _on_nodes(n_processes, nodes)
    # Otherwise the launcher makes a folder for temporary files, which is left when it is killed.
    command += ["--log_dir" if nodes == 1 else "--log-dir", str(file.parent), "-m", module, str(file)]
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    if nodes == 1 and sys.platform == "linux":
        environment["GLOO_SOCKET_IFNAME"] = "lo"  # works even if the machine's host name cannot be resolved
    last = deque(maxlen=80)
    # The launcher outlives its workers. It holds this job's GPUs for them should this process be killed.
    with subprocess.Popen(
        command,
        env=environment,
        pass_fds=devices.held(),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                last.append(line.rstrip())
                say(last[-1])
            code = process.wait()
        finally:
            _end(process)
    if code:
        # Without such a file, the last lines hold the workers' tracebacks, and which of them failed first.
        failures = sorted(file.parent.glob("failure-*.txt"))
        reason = failures[0].read_text() if failures else f"exit status {code}; last lines:\n" + "\n".join(last)
        raise DualReadError(f"training on {n_processes} processes: {reason}")


def _on_nodes(n_processes: int, nodes: int) -> list[str]:
    assigned, cpus = _job()
    if assigned != nodes:
        where = f"a SLURM job on {assigned} node(s)" if assigned else "no job of a SLURM cluster"
        raise ConfigError(
            f"training: nodes: {nodes}, but this is {where}. Expected a job on {nodes} nodes. Run the study with"
            " `--workflow-profile workflow/profiles/slurm`, or leave out nodes."
        )
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    tasks = f"--nodes={nodes} --ntasks={nodes} --ntasks-per-node=1 --cpus-per-task={cpus // nodes} --cpu-bind=none"
    meeting = f"--rdzv-backend=c10d --rdzv-endpoint={socket.gethostname()}:{port}"
    meeting += f" --rdzv-id={os.environ[_JOB_ID]}"
    options = f"--nnodes={nodes} --nproc-per-node={n_processes // nodes} --max-restarts=0 {meeting}"
    command = ["srun", "--kill-on-bad-exit=1", *tasks.split(), sys.executable, "-m", "torch.distributed.run"]
    return [*command, *options.split()]


def _job() -> tuple[int, int]:
    """Return the nodes and the CPUs of the SLURM job that this process belongs to; no nodes without one."""
    # SLURM is asked, because Snakemake hides all variables of the job but its number.
    if (job := os.environ.get(_JOB_ID)) is None:
        return 0, 0
    command = ["squeue", "--noheader", "--job", job, "--format=%D %C"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=True)
        nodes, cpus = done.stdout.split()
        return int(nodes), int(cpus)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise ConfigError(f"training: nodes: SLURM does not say what job {job} has ({in_a_line(error)}).") from error


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
    """Train as one of several processes; return the exit status."""
    file = Path(arguments[0])
    threading.Thread(target=_end_with_owner, args=(os.getppid(),), daemon=True).start()
    rank = os.environ["RANK"]
    try:
        log = Assignment.model_validate_json(file.read_bytes()).train()
    except DualReadError as error:
        file.with_name(f"failure-{rank}.txt").write_text(str(error))
        return 1
    if rank == "0":
        _log_file(file).write_text(json.dumps(log))
    return 0


def _log_file(file: Path) -> Path:
    return file.with_name("log.json")


def _end_with_owner(launcher: int) -> None:
    """End this process when the waiting process has ended: another run may take over the checkpoints."""
    while os.getppid() == launcher and not select.select([sys.stdin], [], [], 1.0)[0]:
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Several processes, one actor. Most tests need no model; the last one trains on two processes, and kills one."""

import json
import os
import signal
import subprocess
import sys

import polars as pl
import pytest
from tests.specs import changed

from dualread.errors import ConfigError, DualReadError
from dualread.seeding import derive_seed
from dualread.training import worker
from dualread.training.trainer import training_order


@pytest.mark.rest
def test_every_process_runs_once_with_one_thread_and_a_local_meeting_point(module, tmp_path):
    name = module("""
        said = {name: os.environ[name] for name in ("WORLD_SIZE", "OMP_NUM_THREADS", "MASTER_ADDR")}
        Path(sys.argv[1]).with_name(os.environ["RANK"]).write_text(repr(said))
    """)
    worker.launch(name, tmp_path / "file", 2)
    expected = repr({"WORLD_SIZE": "2", "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1"})
    assert [(tmp_path / rank).read_text() for rank in "01"] == [expected, expected]


def test_the_error_of_a_failed_worker_is_reported(module, tmp_path):
    name = module("""
        if os.environ["RANK"] == "1":
            Path(sys.argv[1]).with_name("failure-1.txt").write_text("the reward is broken")
            sys.exit(1)
        time.sleep(60)  # the other process waits for it, and is terminated
    """)
    with pytest.raises(DualReadError, match="training on 2 processes: the reward is broken"):
        worker.launch(name, tmp_path / "file", 2)


@pytest.mark.rest
def test_the_output_of_a_worker_that_dies_silently_is_reported(module, tmp_path):
    name = module("print('loading', file=sys.stderr, flush=True); os.kill(os.getpid(), 9)")
    with pytest.raises(DualReadError, match=r"exit status 1; last lines:[\s\S]*SIGKILL"):
        worker.launch(name, tmp_path / "file", 2)


# Start a command once per node, as srun does, and say what a job has; here, both nodes are this machine.
SQUEUE = "#!/bin/sh\necho '{nodes} 6'\n"
SRUN = """#!/bin/sh
echo "$@" > "$(dirname "$0")/asked"
while [ "${1#--}" != "$1" ]; do shift; done
"$@" & "$@" & wait
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Return a function that makes this a job on some nodes."""

    def pretend(nodes):
        for name, text in {"srun": SRUN, "squeue": SQUEUE.format(nodes=nodes)}.items():
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.setenv("SLURM_JOB_ID", "7")

    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    return pretend


@pytest.mark.rest
def test_processes_on_two_nodes_meet(module, slurm, tmp_path):
    slurm(2)
    name = module("""
        said = {name: os.environ[name] for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS")}
        Path(sys.argv[1]).with_name(os.environ["RANK"]).write_text(repr(said))
    """)
    worker.launch(name, tmp_path / "file", 4, nodes=2)
    expected = repr({"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"})
    assert [(tmp_path / rank).read_text() for rank in "0123"] == [expected] * 4
    asked = (tmp_path / "asked").read_text()
    tasks = "--kill-on-bad-exit=1 --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=3 --cpu-bind=none "
    assert asked.startswith(tasks)
    assert "--rdzv-id=7" in asked


@pytest.mark.parametrize(("given", "found"), [(None, "no job of a SLURM cluster"), (1, r"a SLURM job on 1 node\(s\)")])
def test_several_nodes_need_a_slurm_job_on_that_many(slurm, tmp_path, given, found):
    if given:
        slurm(given)
    with pytest.raises(ConfigError, match=f"training: nodes: 2, but this is {found}. Expected a job on 2 nodes"):
        worker.launch("worked", tmp_path / "file", 4, nodes=2)


@pytest.mark.rest
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_when_the_waiting_process_is_interrupted_or_killed(module, tmp_path, end):
    name = module("""
        import threading
        from dualread.training.worker import _end_with_owner
        threading.Thread(target=_end_with_owner, args=(os.getppid(),), daemon=True).start()
        os.write(1, b"working\\n")  # in one write, so that two lines do not mix
        time.sleep(120)
    """)
    program = (
        "import signal, sys; from pathlib import Path; from dualread.store import run\n"
        "from dualread.training import worker\n"
        "signal.signal(signal.SIGTERM, run._terminate)\n"
        f"worker.launch({name!r}, Path('file'), 2)"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdout=pipe, stderr=pipe, text=True) as owner:
        assert [owner.stdout.readline() for _ in range(2)] == ["working\n"] * 2
        owner.send_signal(end)
        # Standard output is closed when every process that could write to it has ended.
        assert owner.communicate(timeout=60)[0] == ""


def recorded(folder):
    return {path.name: [json.loads(line) for line in path.read_text().splitlines()] for path in folder.glob("*-?")}


def without_seconds(scratch):
    return pl.read_json(scratch / "log.json").filter(pl.col("name") != "seconds")


@pytest.mark.long
@pytest.mark.parametrize("lora", [{}, {"lora": {"rank": 2, "alpha": 4}}], ids=["all weights", "lora"])
def test_two_processes_train_one_actor_even_after_a_kill(trainer, assignment, folder, tmp_path, lora):
    """Two processes share the six completions of a step, so that the group of the second prompt is split."""
    spec = changed(assignment.spec, settings={**assignment.spec.settings, **lora})
    assignment = changed(assignment, spec=spec)
    name = trainer()

    def train(work):
        (work.scratch / "work").write_text(work.to_json())
        worker.launch(name, work.scratch / "work", 2)

    train(assignment)
    manifest = pl.read_parquet(assignment.manifest).sort("sample_id")
    order = training_order(
        manifest.height, steps=3, prompts_per_step=3, seed=derive_seed("actor", "tiny", "recorder", 17)
    )
    steps = [[manifest["sample_id"][i] for i in step] for step in order.reshape(3, 3).tolist()]
    straight = recorded(folder)
    assert straight["asked-0"] == [[a, a, b] for a, b, _ in steps]
    assert straight["asked-1"] == [[b, c, c] for _, b, c in steps]
    # Both processes know all groups, identified by their prompts.
    ids = [[name for name in step for _ in range(2)] for step in steps]
    assert straight["groups-0"] == straight["groups-1"] == ids
    log = without_seconds(assignment.scratch)
    assert log.filter(pl.col("name") == "reward")["step"].to_list() == [1, 2, 3]
    assert (log.filter(pl.col("name") == "gradient_norm")["value"] > 0).all()

    for path in folder.glob("*-?"):
        path.unlink()
    (folder / "kill").touch()
    (tmp_path / "again").mkdir()
    (tmp_path / "kept").mkdir()
    again = changed(assignment, out=tmp_path / "again-out", scratch=tmp_path / "again", checkpoints=tmp_path / "kept")
    with pytest.raises(DualReadError, match="SIGKILL"):
        train(again)
    (folder / "kill").unlink()
    train(again)
    assert len(recorded(folder)["asked-0"]) < 6  # it did not start again
    assert without_seconds(again.scratch).equals(log)
    weights = [(path / "model.safetensors").read_bytes() for path in (assignment.checkpoint, assignment.out, again.out)]
    assert weights[0] != weights[1] == weights[2]

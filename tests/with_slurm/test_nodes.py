"""One actor is trained on two nodes of the cluster, which are two daemons on this machine."""

import ast
import re
import shlex
import subprocess
import sys

import polars as pl

from tests.study.embedded import ROOT
from tests.with_slurm.cluster import HOST, NODES
from tests.with_slurm.conftest import SHARED, STUDY
from tests.workflow.checkout import Checkout

ACTOR = "results/cluster/actors/qwen3-vl-tiny/rlvr/17"
# Laid over the study: two processes, each of which holds a half. A model that has learnt nothing gives no right answer.
HALVES = """
backbones:
  qwen3-vl-tiny:
    source: {{pretrain: {{training: {{steps: 1, warmup_steps: 1}}}}}}
    training: {{processes: 2, nodes: {nodes}, shard: full}}
actors:
  rlvr: {{reward: by_length, settings: {{steps: 2, learning_rate: 1.0e-3, warmup_fraction: 0.0, save_every: null}}}}
"""
REWARD = """
CONTRACT = "single"

def reward(found, **columns):
    return [float(len(verdict.completion)) for verdict in found]
"""


# What a process says of itself, and the sum of the ranks of all.
MODULE = """
import os
import sys
from pathlib import Path

import torch
from torch import distributed

distributed.init_process_group("gloo")
total = torch.tensor(int(os.environ["RANK"]))
distributed.all_reduce(total)
said = (os.environ["SLURMD_NODENAME"], os.environ["WORLD_SIZE"], int(total))
Path(sys.argv[1]).with_name(os.environ["RANK"]).write_text(repr(said))
distributed.destroy_process_group()  # its threads would now and then abort a process that ends
"""


def test_processes_on_two_nodes_of_a_job_meet(slurm, tmp_path):
    (tmp_path / "meeting.py").write_text(MODULE)
    script = tmp_path / "job.sh"
    launch = f"from pathlib import Path; worker.launch('meeting', Path('{tmp_path}/file'), 4, nodes=2)"
    script.write_text(
        f"#!/bin/sh\nexport PYTHONPATH={ROOT / 'lib'}:{tmp_path}\n"
        f'exec {shlex.quote(sys.executable)} -c "from dualread.training import worker; {launch}"\n'
    )
    asked = ["--nodes=2", "--ntasks=2", "--partition=nodes", f"--output={tmp_path / 'out'}", "--wait"]
    done = subprocess.run(["sbatch", *asked, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (tmp_path / "out").read_text()
    found = [ast.literal_eval((tmp_path / rank).read_text()) for rank in "0123"]
    assert sorted(node for node, *_ in found) == sorted(2 * NODES)
    assert {said[1:] for said in found} == {("4", 0 + 1 + 2 + 3)}


def test_two_nodes_train_an_actor_as_one_machine_does(slurm, submit, store, tmp_path):
    """What comes before the training is made once, on this machine."""
    checkout = Checkout.create(tmp_path / "nodes")
    (checkout.folder / "lib/dualread/training/rewards/by_length.py").write_text(REWARD)
    (checkout.folder / SHARED[0]).write_text(f"store: {store}\n")
    trained = []
    for nodes in (1, 2):
        (checkout.folder / "halves.yaml").write_text(HALVES.format(nodes=nodes))
        if nodes == 1:
            done = checkout.snakemake(f"{ACTOR}/MANIFEST.json", study=f"{STUDY} {SHARED[0]} halves.yaml")
            assert done.returncode == 0, done.text
        else:
            # Its rule has a name of its own, because SLURM is asked for more.
            where = ["--set-resources", "train_actor_2_nodes:slurm_partition=nodes"]
            head = submit(checkout, f"{ACTOR}/MANIFEST.json", *where, files=(*SHARED, "halves.yaml"))
            assert head.wait() == 0, head.text
        log = pl.read_parquet(checkout.folder / ACTOR / "train_log.parquet")
        trained.append((log, (checkout.folder / ACTOR / "checkpoint" / "model.safetensors").read_bytes()))
    assert trained[0][0].equals(trained[1][0])
    assert trained[0][1] == trained[1][1]
    said = {name: log["value"].to_list() for (name,), log in trained[0][0].group_by("name")}
    assert said["processes"] == [2.0, 2.0]
    assert min(said["gradient_norm"]) > 0
    tasks = [task for task in slurm.tasks() if re.match("rule_train_actor_2_nodes", task.about)]
    # One that waits, and one on each node, with a GPU.
    assert sorted(task.node for task in tasks) == sorted([*NODES, HOST])
    assert len({task.job for task in tasks}) == 1
    assert all(task.devices.isdecimal() for task in tasks)

"""One actor is trained on two nodes of the cluster, which are two daemons on this machine."""

import re

import polars as pl

from tests.with_slurm.conftest import SHARED
from tests.workflow.checkout import Checkout

ACTOR = "results/cluster/actors/qwen3-vl-tiny/rlvr/17"
# Laid over the study: two processes, each of which holds a half.
HALVES = "backbones: {{qwen3-vl-tiny: {{training: {{processes: 2, nodes: {nodes}, shard: full}}}}}}\n"


def test_two_nodes_train_an_actor_as_one_does(slurm, submit, tmp_path):
    checkout = Checkout.create(tmp_path / "nodes")
    trained = []
    for nodes in (2, 1):
        (checkout.folder / "halves.yaml").write_text(HALVES.format(nodes=nodes))
        # Its rule has a name of its own, because SLURM is asked for more.
        where = ["--set-resources", "train_actor_2_nodes:slurm_partition=nodes"] if nodes == 2 else []
        head = submit(checkout, f"{ACTOR}/MANIFEST.json", *where, files=(*SHARED, "halves.yaml"))
        assert head.wait() == 0, head.text
        log = pl.read_parquet(checkout.folder / ACTOR / "train_log.parquet")
        trained.append((log, (checkout.folder / ACTOR / "checkpoint" / "model.safetensors").read_bytes()))
    assert trained[0][0].equals(trained[1][0])
    assert trained[0][1] == trained[1][1]
    assert trained[0][0].filter(pl.col("name") == "processes")["value"].to_list() == [2.0, 2.0, 2.0]
    tasks = [task for task in slurm.tasks() if re.match("rule_train_actor_2_nodes", task.about)]
    assert len(tasks) == 2  # one on each node, with a GPU
    assert len({task.job for task in tasks}) == 1
    assert all(task.devices.isdecimal() for task in tasks)

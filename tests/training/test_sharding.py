"""A model that is spread over processes learns what a whole one learns, on CPUs, where they communicate by gloo."""

import json
import shutil

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import load_file
from tests.architectures import second_in_rest
from tests.specs import changed
from tests.tiny import FAMILIES, MODEL, build

from dualread.errors import DualReadError
from dualread.models.backbones.checkpoint import load
from dualread.schema.base import Plugin
from dualread.training import worker
from dualread.training._sharding import Whole

# Samples with a copy of the model, which gets its weights before each step.
COPIED = """
from tests.training.test_sampled import Engine

def prepare():
    pass

def open_rollouts(checkpoint, model, settings, gpus):
    return Engine(checkpoint, model)
"""
# Counts the numbers that a process has of weights, gradients and moments after each step.
COUNTING = """
from torch.optim.optimizer import register_optimizer_step_post_hook

def count(optimizer, *_):
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    kinds = {{"weights": weights, "gradients": [weight.grad for weight in weights]}}
    for moment in ("exp_avg", "exp_avg_sq"):
        kinds[moment] = [optimizer.state[weight][moment] for weight in weights]
    held = {{kind: [sum(f(t) for t in tensors) for f in (lambda t: t.to_local().numel(), lambda t: t.numel())]
            for kind, tensors in kinds.items()}}
    Path({folder!r}, f"held-{{os.environ['RANK']}}").write_text(repr(held))

register_optimizer_step_post_hook(count)
"""

# Opens a model and shards it; tells the largest memory that this took beyond that of the packages, and what is there.
LOADED = """
import types
import torch
from accelerate import PartialState
from accelerate.utils import FullyShardedDataParallelPlugin
from dualread.models.backbones.checkpoint import load
from dualread.training._lora import gathered
from dualread.training._sharding import opened_by_the_first, spread

def peak():
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return 1024 * int(line.split()[1])

folder, state = Path(sys.argv[1]).parent, PartialState(cpu=True)
whole = load(folder / "small", {model})  # whatever is imported on the way
Path("/proc/self/clear_refs").write_text("5")
before = peak()
model = opened_by_the_first(lambda **how: load(folder / "large", {model}, **how))
read = sum(weight.numel() for weight in model.parameters() if not weight.is_meta)
plugin = FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="transformer_based_wrap")
accelerator = types.SimpleNamespace(
    is_main_process=state.is_main_process, device=state.device, mixed_precision="no",
    state=types.SimpleNamespace(fsdp_plugin=plugin),
)
spread(accelerator, model)
took = peak() - before
held = sum(weight.to_local().numel() for weight in model.parameters())
found = {{name: gathered(tensor) for name, tensor in model.state_dict().items()}}
right = load(folder / "large", {model})
assert found.keys() == right.state_dict().keys()
assert all(torch.equal(found[name], tensor) for name, tensor in right.state_dict().items())
assert model.get_input_embeddings().weight is model.get_output_embeddings().weight
buffers = dict(right.named_buffers())
assert all(torch.equal(buffers.pop(name), buffer) for name, buffer in model.named_buffers())
assert not buffers
(folder / f"told-{{state.process_index}}").write_text(repr((read, held, took)))
"""


@pytest.fixture
def train(trainer, assignment, folder, tmp_path):
    """Return a function that trains on some processes and returns the log and the weights."""
    (folder / "copied.py").write_text(COPIED)
    name = trainer(COUNTING.format(folder=str(folder)))

    def run(made, *, of=assignment, processes=1, checkpoints=None, engine=None, **settings):
        given = {**of.spec.settings, "completions_per_pass": 1, **settings}
        given = {**given, "save_every": 1} if checkpoints else {k: v for k, v in given.items() if k != "save_every"}
        plugins = {"reward": Plugin(module="training.rewards.recorder")}
        plugins |= {"rollouts": Plugin(module=f"training.rollouts.{engine}")} if engine else {}
        spec = changed(of.spec, settings=given, **plugins)
        work = changed(of, spec=spec, out=tmp_path / made, scratch=tmp_path / f"{made}-scratch")
        work = changed(work, checkpoints=checkpoints)
        work.scratch.mkdir()
        if processes == 1:
            log = work.train()
        else:
            (work.scratch / "work").write_text(work.to_json())
            worker.launch(name, work.scratch / "work", processes)
            log = json.loads((work.scratch / "log.json").read_text())
        found = pl.DataFrame(log).filter(pl.col("name") != "seconds")
        return found, work.out / "model.safetensors"

    return run


def close(one, other):
    """Assert that two trainings have learnt the same but for rounding: both logs, and all weights."""
    (log, weights), (other_log, other_weights) = one, other
    log, other_log = (table.filter(pl.col("name") != "processes") for table in (log, other_log))
    assert log.drop("value").equals(other_log.drop("value"))
    log, other_log = (table.filter(pl.col("name") != "rollout_difference") for table in (log, other_log))
    np.testing.assert_allclose(log["value"], other_log["value"], rtol=2e-4, atol=2e-6)
    found, expected = load_file(weights), load_file(other_weights)
    assert found.keys() == expected.keys()
    for name in found:
        np.testing.assert_allclose(found[name], expected[name], atol=2e-5, err_msg=name)


def moved(weights, start):
    """Return by how much weights have changed, the largest change."""
    found, start = load_file(weights), load_file(start / "model.safetensors")
    return max(float(np.abs(found[name] - start[name]).max()) for name in found)


@pytest.mark.long
def test_two_processes_hold_half_each_learn_the_same_and_go_on_after_a_kill(train, assignment, folder, tmp_path):
    settings = {"shard": "full", "kl_coefficient": 0.1}
    whole = train("whole", **settings | {"shard": None})
    straight = train("straight", processes=2, **settings)
    close(straight, whole)
    assert moved(straight[1], assignment.checkpoint) > 1e-3

    told = [eval((folder / f"held-{rank}").read_text()) for rank in (0, 1)]
    for kind in ("weights", "gradients", "exp_avg", "exp_avg_sq"):
        (first, total), (second, _) = (held[kind] for held in told)
        assert first + second == total
        # A tensor with an odd number of rows has one row more in the first process.
        assert abs(first - second) < 0.02 * total

    kept = tmp_path / "kept"
    kept.mkdir()
    (folder / "kill").touch()
    with pytest.raises(DualReadError, match="SIGKILL"):
        train("killed", processes=2, checkpoints=kept, **settings)
    (folder / "kill").unlink()
    assert (kept / "checkpoint-1").is_dir()
    shutil.copytree(kept, tmp_path / "copy")
    log, weights = train("resumed", processes=2, checkpoints=kept, **settings)
    assert log.equals(straight[0])
    assert weights.read_bytes() == straight[1].read_bytes()
    # Another number of processes reads the checkpoint, too.
    three = train("three", processes=3, checkpoints=tmp_path / "copy", **settings)
    close(three, straight)
    # It was killed in the third step, perhaps before the other process had written the second one.
    assert three[0].filter(pl.col("name") == "processes")["value"].to_list() in ([2, 2, 3], [2, 3, 3])


@pytest.mark.long
def test_an_engine_gets_the_weights_of_all_processes_before_each_step(train, assignment):
    """Each step compares its log-probabilities with those of the loss."""
    whole = train("whole", engine="copied")
    sharded = train("sharded", processes=2, engine="copied", shard="optimizer")
    close(sharded, whole)
    assert moved(sharded[1], assignment.checkpoint) > 1e-3
    differences = sharded[0].filter(pl.col("name") == "rollout_difference")["value"]
    assert len(differences) == 3
    assert differences.max() < 1e-5


@pytest.mark.long
def test_an_adapter_is_sharded_with_its_base(train, assignment):
    """Its reference is the base with the adapter switched off."""
    settings = {"lora": {"rank": 2, "alpha": 4}, "kl_coefficient": 0.1}
    whole = train("whole", **settings)
    sharded = train("sharded", processes=2, shard="full", **settings)
    close(sharded, whole)
    assert moved(sharded[1], assignment.checkpoint) > 1e-4


@pytest.mark.long
def test_gemma_in_bfloat16_learns_what_a_whole_one_does(train, assignment, tmp_path):
    """But for the rounding of sums, after which Adam may move a weight without much of a gradient the other way."""
    build("gemma3", tmp_path / "gemma")
    spec = changed(assignment.spec, model={**MODEL, "dtype": "bfloat16"})
    settings = {"of": changed(assignment, checkpoint=tmp_path / "gemma", spec=spec), "kl_coefficient": 0.1, "steps": 2}
    (log, weights), *others = (
        train(made, processes=processes, shard=shard, **settings)
        for made, processes, shard in (("whole", 1, None), ("optimizer", 2, "optimizer"), ("full", 2, "full"))
    )
    start, right = load_file(tmp_path / "gemma" / "model.safetensors"), load_file(weights)
    for other_log, other in others:
        both = [table.filter((pl.col("step") == 1) & (pl.col("name") == "reward")) for table in (log, other_log)]
        np.testing.assert_allclose(*(table["value"] for table in both), rtol=1e-6)
        found = load_file(other)
        moves, errors = ([np.abs(found[name] - of[name]).sum() for name in right] for of in (start, right))
        assert sum(errors) < 0.1 * sum(moves)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_process_alone_reads_a_model_that_others_get_a_part_of(module, tmp_path, family):
    build(family, tmp_path / "small")
    build(family, tmp_path / "large", hidden_size=512, feed_forward=2048, layers=12)
    worker.launch(module(LOADED.format(model=MODEL)), tmp_path / "file", 2)
    (read, held, _), (none, other, took) = (eval((tmp_path / f"told-{rank}").read_text()) for rank in (0, 1))
    assert none == 0
    assert held + other == read > 4e7
    assert took < 0.75 * 4 * read  # bytes: its half, and one tensor


@second_in_rest
def test_a_whole_model_has_weights_while_it_is_filled(tiny):
    """Here all of them are in this process."""
    import torch

    trained = load(tiny.checkpoint, MODEL)
    trained.forward = lambda *_, **__: None  # as trl replaces it
    whole = Whole(trained)
    assert {weight.device.type for weight in whole.model.parameters()} == {"meta"}
    ids = torch.tensor([[5, 6, 7]])
    for scale in (1.0, 2.0):
        with torch.no_grad():
            trained.get_output_embeddings().weight.mul_(scale)
        with whole.filled(trained, "cpu"):
            assert whole.is_filled
            with torch.no_grad():
                assert torch.equal(whole.model(input_ids=ids).logits, type(trained).forward(trained, ids).logits)
            one, other = whole.model.get_input_embeddings().weight, whole.model.get_output_embeddings().weight
            tied = trained.get_input_embeddings().weight is trained.get_output_embeddings().weight
            assert (one.data_ptr() == other.data_ptr()) == tied
        assert not whole.is_filled
        assert {weight.device.type for weight in whole.model.parameters()} == {"meta"}
    with whole.filled(trained, "cpu", torch.bfloat16):
        assert {weight.dtype for weight in whole.model.parameters()} == {torch.bfloat16}
    with whole.filled(trained, None):  # it takes part in the gathering alone
        assert not whole.is_filled

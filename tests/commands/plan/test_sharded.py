"""What a sharded training holds, by hand for 1e9 parameters; and whether the paper's models fit on smaller GPUs."""

import pytest
import yaml

from dualread.commands.plan import peaks, sharded
from dualread.commands.plan.memory import needs
from dualread.commands.plan.models import model_of
from dualread.commands.plan.report import COSTS
from dualread.study.files import load
from tests.commands.plan.test_memory import batch, config, model
from tests.study.embedded import ROOT

KL = {"kl_coefficient": 0.1, "prompts_per_step": 64}


def trained(training, of=None, **settings):
    of = of or model(gpu={**model().gpu, "memory": 5e10})
    training = {"processes": 8, "shard": "full", **training}
    [need, *_] = needs(config(settings={**KL, **settings}, training=training), "b", of)
    return need


LONG = batch(32, 8, made=5000)  # so long that learning needs more than sampling one short completion


def learning(*, by_layers=True, reference=True, adapter=None):
    layout = sharded.ShardedLayout(processes=8, by_layers=by_layers)
    given = {"rollouts": batch(1, 1), "of_step": 32, "reference": reference, "adapter": adapter}
    return sharded.training(model().size, LONG, "bfloat16", layout, **given)


def test_each_process_holds_an_equal_part():
    """Eight processes: an eighth of 4, 4, 8 and 4 GB."""
    parts = learning()
    assert (parts["weights"], parts["gradients"]) == (5e8, 5e8)
    assert (parts["Adam"], parts["reference model"]) == (1e9, 5e8)
    assert learning(reference=False)["reference model"] == 0


def test_what_is_gathered_while_the_model_learns():
    """A layer has 2 x 1,000 x (1,000 + 500) + 3 x 1,000 x 2,000 = 9e6 weights, the embedding 1e5 x 1,000 = 1e8."""
    of = model().size
    assert peaks.layer_parameters(of) == 9e6
    # two layers and the embedding in float32, one layer in bfloat16, and the gradients of one
    full = sharded.gathered(of, "bfloat16", 4, by_layers=True, trained=True)
    assert full == 4 * (2 * 9e6 + 1e8) + 2 * 9e6 + 4 * 9e6
    assert sharded.gathered(of, "bfloat16", 4, by_layers=False, trained=True) == 4 * 1e9 + 6 * 9e6
    assert sharded.gathered(of, "float32", 4, by_layers=True, trained=True) == 4 * (2 * 9e6 + 1e8) + 4 * 9e6
    # of a base in bfloat16, below an adapter
    assert sharded.gathered(of, "bfloat16", 2, by_layers=True, trained=False) == 2 * (2 * 9e6 + 1e8)
    assert learning()["gathered weights"] == full
    assert learning(by_layers=False)["gathered weights"] == 4 * 1e9 + 6 * 9e6
    assert learning()["one pass"] == peaks.one_pass(of, LONG, "bfloat16", of_step=32, adapter=False)


def test_the_whole_weights_are_there_while_the_model_samples():
    """The largest tensor is the embedding; an engine has .3 of 50 GB."""
    engine = {"rollouts": "vllm", "rollout_settings": {"sleep": True}}
    held = {"weights": 5e8, "Adam": 1e9, "reference model": 5e8}
    assert trained(engine).parts == {**held, "a gathered weight": 4e8, "vLLM": 1.5e10}
    # Where it has little, the peak is the comparison, for which there is a copy in bfloat16.
    little = {**engine, "rollout_settings": {"sleep": True, "gpu_memory_utilization": 0.01}}
    one = peaks.one_completion(model().size, batch(1, 1), "bfloat16")
    comparing = {**held, "whole weights in bfloat16": 2e9, "one completion": one}
    assert trained(little, completions_per_pass=1).parts == comparing
    # without sleep, it keeps its share
    assert trained({"rollouts": "vllm"}, completions_per_pass=1).parts == {**comparing, "vLLM": 1.5e10}
    own = trained({}, completions_per_pass=1, rollouts_per_pass=128).parts
    rollouts = sum(peaks.sampled(model().size, batch(32, 8), "bfloat16").values())
    assert own == {**held, "whole weights": 4e9, "bfloat16 copies": 2e9, "rollouts": rollouts}


def test_an_adapter_and_an_algorithm_that_reads_need_the_whole_weights_beside_an_engine():
    def peak(adapter, reads):
        layout = sharded.ShardedLayout(processes=8, by_layers=True, engine=1e6, sleeps=True, reads=reads)
        given = {"rollouts": batch(1, 1), "of_step": 1, "reference": False, "adapter": adapter}
        return sharded.training(model().size, batch(1, 1), "bfloat16", layout, **given)

    assert "whole weights in bfloat16" in peak(None, False)
    assert peak(None, True)["whole weights in float32"] == peak(1e5, False)["whole weights in float32"] == 4e9
    assert peak(None, True)["in bfloat16"] == peak(1e5, False)["in bfloat16"] == 2e9


def test_an_adapter_is_sharded_with_its_base():
    a = peaks.adapter_parameters(model().size, 2, vision=False)
    parts = learning(adapter=a)
    assert (parts["weights"], parts["adapter, Adam"], parts["gradients"]) == (2e9 / 8, 12 * a / 8, 4 * a / 8)


def test_more_processes_need_less_each():
    by_processes = [trained({"processes": n}).total for n in (2, 4, 8)]
    assert by_processes == sorted(by_processes, reverse=True)
    assert sum(learning().values()) < sum(learning(by_layers=False).values())


def fits(study, gpu, training=None):
    """Return what trainings of a study need, by backbone, and the bytes that a GPU of some memory has for them."""
    files = [ROOT / "workflow/studies" / study]
    settings = load(files, ROOT).model_dump(mode="json", exclude_none=True)
    costs = yaml.safe_load(COSTS.read_text())
    costs["gpu"]["memory"] = gpu
    found = {}
    for name, backbone in settings["backbones"].items():
        backbone["training"] |= (training or {}).get(name, {})
        of = model_of(settings, name, costs)
        found[name] = [need for need in needs(settings, name, of) if need.stage.startswith("train_actor")]
    return found, gpu * costs["gpu"]["memory_share"]


SHARDED = {"medgemma-1.5-4b": {"shard": "full"}, "qwen3-vl-2b": {"shard": "full", "completions_per_pass": 8}}


@pytest.mark.parametrize(
    ("study", "gpu", "training", "backbones"),
    [
        ("paper.yaml", 80e9, SHARDED, ["medgemma-1.5-4b", "qwen3-vl-2b"]),  # on 8 GPUs, and on 4
        ("paper.yaml", 40e9, SHARDED, ["qwen3-vl-2b"]),
        ("one_gpu_lora.yaml", 24e9, {}, ["medgemma-1.5-4b", "qwen3-vl-2b"]),
    ],
)
def test_the_papers_models_fit(study, gpu, training, backbones):
    found, room = fits(study, gpu, training)
    for name in backbones:
        assert found[name]
        assert max(need.total for need in found[name]) <= room


def test_a_model_that_does_not_fit_is_to_be_sharded():
    found, room = fits("paper.yaml", 80e9)
    for need in found["medgemma-1.5-4b"]:
        assert need.total > room
        assert need.advice(room) == "set backbones.medgemma-1.5-4b.training.shard to full"

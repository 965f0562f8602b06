"""What stages need with a model of 1e9 parameters, and what to change where that is too much."""

import re

import pytest

from dualread.commands.plan import peaks
from dualread.commands.plan.memory import needs, of_machine
from tests import tiny
from tests.commands.plan.test_models import SAID, large

GRPO = {
    "prompts_per_step": 8, "group_size": 4, "completions_per_pass": 4, "max_completion_tokens": 100,
    "kl_coefficient": 0.0, "max_prompt_tokens": 10_000,
}  # fmt: skip
GREEDY = {"temperature": 0.0, "max_completion_tokens": 100}
PIXELS = 500_000  # 500 image tokens of 1,000 pixels


def config(settings=None, training=None, engine=None, views=None):
    return {
        "backbones": {"b": {"settings": {"max_prompt_tokens": 10_000}, "training": training or {}}},
        "actors": {"base": {}, "rlvr": {"training": "grpo", "settings": {**tiny.GRPO, **GRPO, **(settings or {})}}},
        "generation": {"settings": engine or {"batch_size": 10}, "decoding": GREEDY},
        "views": views or {},
        "replay": {"settings": {"batch_size": 10}},
    }


def model(**changes):
    return large(**{"pixels": (1, PIXELS), **changes})


def found(of=None, **changes):
    return {need.stage: need for need in needs(config(**changes), "b", of or model())}


def batch(rows, prompts, made=100, prompt=SAID + 500):
    return peaks.LongestBatch(rows=rows, prompts=prompts, prompt=prompt, made=made, pixels=PIXELS)


def test_training_holds_weights_gradients_and_adam_in_float32():
    parts = found()["train_actor (rlvr)"].parts
    assert (parts["weights"], parts["gradients"], parts["Adam"]) == (4e9, 4e9, 8e9)
    assert (parts["reference model"], parts["bfloat16 copies"]) == (0, 2e9)
    with_kl = found(model(dtype="float32"), settings={"kl_coefficient": 0.1})["train_actor (rlvr)"].parts
    assert (with_kl["reference model"], with_kl["bfloat16 copies"]) == (4e9, 0)


def test_a_pass_of_training_is_as_long_as_its_longest_row():
    size = model().size
    one = batch(4, 1)
    expected = peaks.training(size, one, "bfloat16", rollouts=one, of_step=32, reference=False)
    assert found()["train_actor (rlvr)"].parts == expected
    one = batch(4, 1, prompt=300)
    short = peaks.training(size, one, "bfloat16", rollouts=one, of_step=32, reference=False)
    assert found(settings={"max_prompt_tokens": 300})["train_actor (rlvr)"].parts == short
    # four processes have 8 completions of a step each
    shared = peaks.training(size, batch(4, 1), "bfloat16", rollouts=batch(4, 1), of_step=8, reference=False)
    assert found(training={"processes": 4})["train_actor (rlvr)"].parts == shared
    assert sum(short.values()) < sum(shared.values()) < sum(expected.values())
    # without a GPU, no layer is computed again
    [on_cpu, *_] = needs(config(), "b", model(), on_gpu=False)
    assert on_cpu.total > found()["train_actor (rlvr)"].total


def test_on_a_machine_every_process_reads_the_weights_and_of_a_sharded_model_one():
    """1e9 weights of 4 bytes; an adapter's base has 2, and weights for an engine are there twice, in 2 bytes."""

    def held(settings=None, **training):
        [(stage, parts)] = of_machine(config(settings=settings, training=training), "b", model())
        assert stage == "train_actor (rlvr)"
        return parts

    assert held() == {"weights that are read": 4e9}
    assert held(processes=8) == {"weights that are read": 3.2e10}
    assert held(processes=8, nodes=4) == {"weights that are read": 8e9}
    assert held(processes=8, shard="full") == {"weights that are read": 4e9}
    assert held(processes=8, nodes=4, shard="optimizer") == {"weights that are read": 4e9}
    assert held({"lora": {"rank": 2, "alpha": 4}}, processes=8) == {"weights that are read": 1.6e10}
    apart = {"rollouts": "vllm", "rollout_gpus": 1, "processes": 8}
    assert held(**apart) == {"weights that are read": 3.2e10}  # as much as for 8 engines
    assert held(**apart, shard="full") == {"weights for vLLM": 3.2e10}


def training(**settings):
    return found(settings={"prompts_per_step": 64, **settings})["train_actor (rlvr)"]


def test_rollouts_need_room_for_what_is_sampled_at_once():
    few, many, all_of_them = (training(prompts_per_step=128, rollouts_per_pass=n) for n in (1, 512, 1000))
    assert few.parts == training(prompts_per_step=128).parts  # one pass of learning needs more
    sampled = peaks.generation(model().size, batch(512, 128), "float32", sampled=True)
    # values are bfloat16; of each entry of the vocabulary, a step holds 5 numbers of 4 bytes
    assert many.parts["rollouts"] == pytest.approx(
        sampled["keys and values"] * 6 / 8 + 512 * model().size["vocabulary"] * 20
    )
    assert many.total > few.total
    assert all_of_them.parts == many.parts  # a step has only 512


def test_an_engine_has_its_share_always_or_while_it_samples():
    of, kl = model(gpu={**model().gpu, "memory": 5e10}), {"kl_coefficient": 0.1}

    def parts(**settings):
        training = {"rollouts": "vllm", "rollout_settings": settings}
        return found(of, settings=kl, training=training)["train_actor (rlvr)"].parts

    alone = peaks.training(of.size, batch(4, 1), "bfloat16", rollouts=None, of_step=32, reference=True)
    assert parts() == {**alone, "vLLM": 0.3 * 5e10}
    assert parts(gpu_memory_utilization=0.5)["vLLM"] == 2.5e10
    apart = {"rollouts": "vllm", "rollout_gpus": 1}
    assert found(of, settings=kl, training=apart)["train_actor (rlvr)"].parts == alone  # on GPUs of its own
    # Asleep it has nothing, and while it samples there are weights, two moments and the reference of 1e9 parameters.
    awake = {"weights": 4e9, "Adam": 8e9, "reference model": 4e9, "vLLM": 1.5e10}
    assert parts(sleep=True) == awake
    assert 1.6e10 < sum(alone.values()) < sum(awake.values())
    assert parts(sleep=True, gpu_memory_utilization=0.01) == alone
    lora = {"lora": {"rank": 2, "alpha": 4}}
    training = {"rollouts": "vllm", "rollout_settings": {"sleep": True}}
    adapted = found(of, settings=lora, training=training)["train_actor (rlvr)"].parts
    assert adapted == {"weights": 2e9, "adapter, Adam": 3 * 320_000 * 4, "vLLM": 1.5e10}


def test_the_advice_names_what_does_not_fit():
    at = "set backbones.b.training."
    fits = training(rollouts_per_pass=112).total
    assert fits > training(rollouts_per_pass=111).total
    assert training(rollouts_per_pass=128).advice(fits) == f"{at}rollouts_per_pass to 112"
    # more is learned from at once than fits, whatever is sampled
    less = training(completions_per_pass=2, rollouts_per_pass=1).total
    assert training(rollouts_per_pass=1).advice(less) == f"{at}completions_per_pass to 2"
    both = training(rollouts_per_pass=128).advice(less)
    n = int(
        re.fullmatch(f"{at}completions_per_pass to 2 and backbones.b.training.rollouts_per_pass to (\\d+)", both)[1]
    )
    assert training(completions_per_pass=2, rollouts_per_pass=n).total <= less
    assert training(completions_per_pass=2, rollouts_per_pass=n + 1).total > less
    # without a number of its own, the rollouts follow
    assert training(completions_per_pass=4).advice(less) == f"{at}completions_per_pass to 2"


def test_generation_needs_room_for_its_largest_view():
    size, generate = model().size, found()["generate"].parts
    assert generate == peaks.generation(size, batch(10, 10), "bfloat16", sampled=False)
    long = {"probe": {"decoding": {**GREEDY, "max_completion_tokens": 50_000}}}
    assert found(views=long)["generate"].parts == peaks.generation(
        size, batch(10, 10, made=50_000), "bfloat16", sampled=False
    )
    integers = {"stated": {"choices": {"integers": [0, 100_000]}}}
    after = batch(10, 10, made=0, prompt=SAID + 500 + 100)
    assert found(views=integers)["generate"].parts == peaks.scoring(size, after, "bfloat16", prefixes=100_001)


def test_a_pass_over_prompts_is_larger_on_a_gpu():
    """Of images of 500 tokens, a pass reads 3 on a CPU (1,536 tokens), and 16 on a GPU (8,192)."""

    def parts(stage, **changes):
        of = model(at_once=20, replayed=20, **changes)
        return [{need.stage: need.parts for need in needs(config(), "b", of, on_gpu=on)}[stage] for on in (False, True)]

    on_cpu, on_gpu = parts("generate")
    assert on_gpu == {**on_cpu, "prompts": on_cpu["prompts"] / 3 * 16}
    on_cpu, on_gpu = parts("replay", dtype="float32")
    assert on_cpu["one batch"] < on_gpu["one batch"]


@pytest.mark.parametrize(
    ("prefixes", "rows", "tokens"),
    [(111, 16, 16 * 111), (200, 16, 2048), (3000, 2, 3000)],  # of 3,000 prefixes, a pass has two rows
)
def test_choices_have_the_logits_of_2048_tokens_or_of_one_row(prefixes, rows, tokens):
    """16 images of 500 tokens; 20,000 bytes of keys and values per token, two copies of 100,000 logits in float64."""
    found = peaks.scoring(model().size, batch(20, 20, 0, 501), "bfloat16", prefixes=prefixes)
    assert found["one batch"] == (16 * 500 + rows * (501 + prefixes)) * 20_000 + tokens * 100_000 * 16


def test_vllm_needs_room_for_one_answer():
    parts = found(model(padded=False))["generate (vLLM, at least)"].parts
    assert parts["weights"] == 2e9
    # 10 layers x 500 numbers x 2 bytes of keys and as many of values
    assert parts["keys and values of one answer"] == (SAID + 500 + 100) * 10 * 500 * 4


@pytest.mark.parametrize("stage", ["train_actor (rlvr)", "generate", "replay"])
def test_the_advice_is_the_largest_batch_that_fits(stage):
    setting = {
        "train_actor (rlvr)": lambda n: {"settings": {"completions_per_pass": n}},
        "generate": lambda n: {"engine": {"batch_size": n}},
        "replay": lambda n: {},
    }[stage]

    def need(n):
        of = model(at_once=n, replayed=n)
        return found(of, **setting(n))[stage]

    most = 15 if stage == "replay" else 16  # a pass of the replay has at most 16 images
    room = need(most).total
    advice = need(64).advice(room)
    assert re.search(rf"(\.completions_per_pass|generation.*batch_size|replay.*batch_size) to {most}$", advice)
    assert need(most + 1).total > room
    assert "even one row at once needs" in need(64).advice(1e9)


def test_more_processes_hold_the_images_of_fewer_rows():
    images = {"prompts_per_step": 1024, "completions_per_pass": 1}
    one, two = (found(settings=images, training={"processes": n})["train_actor (rlvr)"] for n in (1, 2))
    assert one.advice(two.total) == "set backbones.b.training.processes to 2"
    longer = found(settings={**images, "completions_per_pass": 2})["train_actor (rlvr)"]
    assert longer.advice(two.total) == (
        "set backbones.b.training.completions_per_pass to 1 and backbones.b.training.processes to 2"
    )


def test_an_adapter_alone_has_gradients_and_there_is_no_second_model():
    lora = {"lora": {"rank": 2, "alpha": 4}, "kl_coefficient": 0.1}
    # Inputs and outputs of a layer of width 1,000: queries and their output 2,000 each, keys and values 1,500 each, and
    # 3,000 for each of three feed-forward matrices; 16,000 in 10 layers with rank 2 are 320,000 parameters.
    assert peaks.adapter_parameters(model().size, 2, vision=False) == 320_000
    # Before the first step, 100 tokens of a completion have logits of 100,000 entries, with two copies in float64.
    few = found(settings=lora)["train_actor (rlvr)"].parts
    assert few == {"weights in float32": 4e9, "adapter": 4 * 320_000, "one completion": 100 * 100_000 * 20}
    # With 50 tokens they are half as large, less than the embedding that is cast back: 1,000 numbers of 2 bytes each.
    fewer = found(settings={**lora, "max_completion_tokens": 50})["train_actor (rlvr)"].parts
    assert fewer["one completion"] == 100_000 * 1_000 * 2
    many = found(settings={**lora, "completions_per_pass": 32, "max_completion_tokens": 400})[
        "train_actor (rlvr)"
    ].parts
    assert list(many) == ["weights", "adapter, gradients, Adam", "one pass or rollouts"]
    assert list(many.values())[:2] == [2e9, 4 * 4 * 320_000]
    assert sum(many.values()) > sum(few.values()) + 100_000 * 300 * 20


def test_an_adapter_of_the_vision_tower_has_its_layers_too():
    size = model().size
    seen, fed = size["vision_width"], size["vision_feed_forward"]
    more = peaks.adapter_parameters(size, 3, vision=True) - peaks.adapter_parameters(size, 3, vision=False)
    assert more == 3 * size["vision_layers"] * (4 * 2 * seen + 2 * (seen + fed))

"""Memory computed by hand for a model of 1e9 parameters."""

import pytest

from dualread.commands.plan.memory import needs
from dualread.models import prompts
from tests.commands.plan.test_models import large

TEXT = len(prompts.template("shared")) / 4 + 30
GRPO = {
    "prompts_per_step": 8, "group_size": 4, "completions_per_pass": 4, "max_completion_tokens": 100,
    "kl_coefficient": 0.0, "max_prompt_tokens": 10_000,
}  # fmt: skip


def config(settings=None, dtype="bfloat16", engine=None):
    return {
        "backbones": {"b": {"settings": {"dtype": dtype, "max_prompt_tokens": 10_000}}},
        "actors": {"base": {}, "rlvr": {"training": "grpo", "settings": {**GRPO, **(settings or {})}}},
        "generation": {"settings": engine or {"max_num_seqs": 9}, "decoding": {"max_completion_tokens": 100}},
        "replay": {"settings": {"batch_size": 2}},
    }


MODEL = large(pixels=(1, 500_000))  # 500 image tokens of 1,000 pixels, 2,000 patches


def found(**changes):
    return {need.stage: need for need in needs(config(**changes), "b", MODEL)}


def test_training_holds_weights_gradients_and_adam_in_float32():
    parts = found()["train_actor (rlvr)"].parts
    assert parts["weights and gradients"] == 8e9
    assert parts["Adam"] == 8e9
    assert parts["reference model"] == 0
    assert parts["bfloat16 copies"] == 2e9
    assert parts["pixels of a step"] == 32 * 500_000 * 3 * 4 * 2
    with_kl = found(settings={"kl_coefficient": 0.1, "processes": 4}, dtype="float32")["train_actor (rlvr)"].parts
    assert (with_kl["reference model"], with_kl["bfloat16 copies"]) == (4e9, 0)
    assert with_kl["pixels of a step"] == 8 * 500_000 * 3 * 4 * 2


def test_one_pass_of_training_is_as_long_as_its_longest_row():
    tokens = TEXT + 500 + 100
    states, vision = 4 * tokens * 2048 * 4, 4 * 2000 * 500 * 4
    # the input of every layer, the largest layer while it is computed again, and logits of 100 tokens three times
    expected = 25 * states + 10 * vision + 24 * max(states, vision) + 4 * 100 * 100_000 * 4 * 3
    assert found()["train_actor (rlvr)"].parts["one pass"] == pytest.approx(expected)


def test_a_prompt_is_no_longer_than_its_limit():
    short = found(settings={"max_prompt_tokens": 300})["train_actor (rlvr)"].parts["one pass"]
    assert short < found()["train_actor (rlvr)"].parts["one pass"]


def test_generation_holds_keys_and_values_of_a_batch_and_vllm_what_it_is_given():
    assert "generate" not in found()
    parts = found(engine={"batch_size": 10})["generate"].parts
    assert parts["weights"] == 2e9
    # 10 rows: 2 x 25 layers x 1,000 numbers x 2 bytes a token, and scores over the vocabulary in float64
    assert parts["one pass"] == pytest.approx(10 * ((TEXT + 600) * 100_000 + 100_000 * 24))


def test_replay_needs_room_for_float32_weights():
    assert found()["replay"].parts["weights"] == 4e9
    assert found()["replay"].total > 5e9

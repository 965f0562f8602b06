"""The settings of plugins, which are checked against the classes that the plugins declare."""

import pytest

from dualread.study.config import resolve
from dualread.training.settings import training_settings
from tests.study.embedded import EMBEDDED, merged, problems


def test_the_settings_of_an_engine_are_checked():
    engine = {"engine": "vllm_engine", "settings": {"max_num_seqs": 0}}
    message = problems({"generation": engine})
    assert "generation.settings.batch_size: unknown key. Known: eager, gpu_memory_utilization, max_num_seqs." in message
    assert "generation.settings.max_num_seqs: 0 is less than the minimum of 1" in message
    message = problems({"machine": {"vllm": "rocm"}})
    assert "config.yaml: machine.vllm: 'rocm' is not allowed. Known: cuda, cpu." in message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"actors": {"rlvr": {"settings": {"step": 3}}}}, "actors.rlvr.settings.step: unknown key. Known: betas, "),
        ({"actors": {"rlvr": {"settings": {"kl_coefficient": None}}}}, "actors.rlvr.settings.kl_coefficient: missing."),
        ({"generation": {"settings": {"batch_size": "big"}}}, "generation.settings.batch_size: 'big' is not of type"),
        ({"replay": {"settings": {"batchsize": 3}}}, "replay.settings.batchsize: unknown key. Known: batch_size."),
    ],
)
def test_settings_of_plugins_are_checked_before_anything_runs(changes, message):
    assert message in problems(changes)


def of_training(**settings):
    return {"backbones": {"qwen3-vl-tiny": {"training": settings}}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (of_training(rollouts="vlm"), "Known: vllm. Did you mean 'vllm'?"),
        (
            of_training(rollouts="vllm", rollout_settings={"max_seqs": 3}),
            "backbones.qwen3-vl-tiny.training.rollout_settings.max_seqs: unknown key. Known: gpu_memory_utilization, ",
        ),
        (
            of_training(rollouts="vllm", importance_sampling={"mode": "tokens", "clip_max": 2.0}),
            "importance_sampling.mode: 'tokens' is not",
        ),
    ],
)
def test_rollouts_are_checked_before_anything_runs(changes, message):
    assert message in problems(changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            of_training(shard="full"),
            "backbones.qwen3-vl-tiny.training over actors.rlvr.settings.shard: there is one process. Expected several",
        ),
        (of_training(shard="all", processes=2), "shard: 'all' is not allowed. Known: optimizer, full."),
        (
            of_training(shard="full", processes=2, lora={"rank": 2, "alpha": 4, "dropout": 0.1}),
            "over actors.rlvr.settings.lora.dropout: 0.1. Expected none with `shard`, because layers",
        ),
        (of_training(processes=3, nodes=2), "nodes: 2 cannot share 3 `processes` equally. Change either."),
        (of_training(num_iterations=3), "steps: 8. Expected a multiple of num_iterations, 3."),
        (of_training(num_iterations=2, save_every=3), "save_every: 3. Expected a multiple of num_iterations, 2."),
        (
            {"actors": {"rlvr": {"settings": {"nodes": 2}}}},
            "actors.rlvr.settings.nodes: only a backbone's `training` may set it. Move it there.",
        ),
    ],
)
def test_layouts_are_checked_before_anything_runs(changes, message):
    assert message in problems(changes)


def test_a_layout_may_have_several_nodes():
    assert resolve(merged(EMBEDDED, of_training(shard="optimizer", processes=4, nodes=2)))


def test_settings_of_a_backbone_and_its_recipe_are_checked():
    settings = {"dtype": "float16"}
    assert "settings.dtype: 'float16' is not allowed. Known: float32, bfloat16." in problems(
        {"backbones": {"medgemma-tiny": {"settings": settings}}}
    )
    recipe = {"pretrain": {"architecture": {"layer": 4}, "pool": {"settings": {"image": 3}}}}
    assert "architecture.layer: unknown key." in problems({"backbones": {"medgemma-tiny": {"source": recipe}}})
    recipe = {"pretrain": {"pool": {"settings": {"image": 3}}}}
    assert "pool.settings.image: unknown key." in problems({"backbones": {"medgemma-tiny": {"source": recipe}}})


def test_the_larger_prompt_limit_counts_and_otherwise_the_setting_of_the_backbone():
    def settings(actor, backbone):
        return training_settings(actor, backbone)

    both = settings({"steps": 8, "clip_low": 0.2, "max_prompt_tokens": 1024}, {"steps": 9, "max_prompt_tokens": 512})
    assert both == {"steps": 9, "clip_low": 0.2, "max_prompt_tokens": 1024}
    assert settings({"steps": 8}, {"max_prompt_tokens": 512}) == {"steps": 8, "max_prompt_tokens": 512}
    assert training_settings({"steps": 8}, {}) == {"steps": 8}

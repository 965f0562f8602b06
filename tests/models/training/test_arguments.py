"""How settings of the config become TRL's arguments."""

import pytest
from jsonschema import Draft202012Validator

from dualread.models.training import grpo
from dualread.models.training._arguments import arguments


def test_by_default_the_trained_model_itself_samples_completions(job):
    assert not arguments(job("actor"), [7, 9]).use_vllm


@pytest.mark.parametrize(
    ("rollouts", "mode", "share"),
    [
        ({"engine": "vllm", "mode": "colocate", "gpu_memory_share": 0.4}, "colocate", 0.4),
        ({"engine": "vllm", "mode": "server"}, "server", 0.3),  # TRL's default, not used by a server
    ],
)
def test_vllm_samples_completions_without_forbidden_tokens(job, rollouts, mode, share):
    made = arguments(job("actor", rollouts=rollouts), [7, 9])
    assert (made.use_vllm, made.vllm_mode, made.vllm_gpu_memory_utilization) == (True, mode, share)
    assert made.generation_kwargs == {"logit_bias": {7: -100.0, 9: -100.0}}
    assert made.vllm_max_model_length == 200 + 8  # the longest prompt and the longest completion


@pytest.mark.parametrize(
    "rollouts",
    [{"engine": "vllm"}, {"engine": "other", "mode": "server"}, {"engine": "vllm", "mode": "server", "x": 1}],
)
def test_unknown_rollouts_are_refused(rollouts):
    assert list(Draft202012Validator(grpo.SETTINGS["rollouts"]).iter_errors(rollouts))


def test_clip_and_kl_come_from_the_settings(job):
    made = arguments(job("actor", clip_low=0.2, clip_high=0.28, kl_coefficient=1e-3), [])
    assert (made.epsilon, made.epsilon_high, made.beta) == (0.2, 0.28, 1e-3)


def test_checkpoints_are_written_to_the_folder_that_outlives_a_kill(job, tmp_path):
    assert arguments(job("actor", save_every=5), []).save_strategy == "no"
    made = arguments(job("actor", save_every=5, checkpoints=tmp_path / "kept"), [])
    assert (made.output_dir, made.save_strategy, made.save_steps) == (str(tmp_path / "kept"), "steps", 5)
    assert made.save_total_limit == 2


def test_fixed_hyperparameters_are_those_of_the_paper(job):
    """The table of hyperparameters translates these names into English."""
    made = arguments(job("actor"), [])
    assert (made.loss_type, made.scale_rewards) == ("grpo", "group")
    assert (made.optim, made.lr_scheduler_type) == ("adamw_torch_fused", "constant_with_warmup")

"""How settings of the config become TRL's arguments."""

from dualread.models.training._arguments import arguments


def test_clip_and_kl_come_from_the_settings(job):
    made = arguments(job("actor", clip_low=0.2, clip_high=0.28, kl_coefficient=1e-3))
    assert (made.epsilon, made.epsilon_high, made.beta) == (0.2, 0.28, 1e-3)


def test_checkpoints_are_written_to_the_folder_that_outlives_a_kill(job, tmp_path):
    assert arguments(job("actor", save_every=5)).save_strategy == "no"
    made = arguments(job("actor", save_every=5, checkpoints=tmp_path / "kept"))
    assert (made.output_dir, made.save_strategy, made.save_steps) == (str(tmp_path / "kept"), "steps", 5)
    assert made.save_total_limit == 2


def test_fixed_hyperparameters_are_those_of_the_paper(job):
    """The table of hyperparameters translates these names into English."""
    made = arguments(job("actor"))
    assert (made.loss_type, made.scale_rewards) == ("grpo", "group")
    assert (made.optim, made.lr_scheduler_type) == ("adamw_torch_fused", "constant_with_warmup")

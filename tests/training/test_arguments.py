"""How settings of the config become TRL's arguments."""

import dataclasses
import re

from trl.trainer.grpo_config import GRPOConfig

from dualread.schema.explained import plugin_settings
from dualread.training._arguments import arguments

CORRECTION = {"mode": "token_mask", "clip_max": 3.0}


def test_checkpoints_are_written_to_the_folder_that_outlives_a_kill(job, tmp_path):
    kept = {"checkpoints": tmp_path / "kept"}
    for without in ({"save_every": 5}, kept):  # there is no folder that outlives a kill, or nothing is to be saved
        assert arguments(job("actor", **without)).save_strategy == "no"
    made = arguments(job("actor", save_every=5, **kept))
    assert (made.output_dir, made.save_strategy, made.save_steps) == (str(tmp_path / "kept"), "steps", 5)
    assert made.save_total_limit == 2


def test_fixed_hyperparameters_are_those_of_the_paper(job):
    """The table of hyperparameters translates these names into English."""
    made = arguments(job("actor"))
    assert (made.loss_type, made.scale_rewards) == ("grpo", "group")
    assert (made.optim, made.lr_scheduler_type) == ("adamw_torch_fused", "constant_with_warmup")


def test_names_of_trl_that_descriptions_give_are_trls_and_have_the_setting_s_value(job, tmp_path):
    """Somebody who comes from TRL finds its names in `dualread schema training`."""
    given = {
        **{"group_size": 4, "completions_per_pass": 8, "max_completion_tokens": 9, "clip_low": 0.1, "clip_high": 0.3},
        **{"kl_coefficient": 0.04, "warmup_fraction": 0.25, "clip_norm": 0.5, "save_every": 3},
    }
    made = arguments(job("actor", checkpoints=tmp_path / "kept", importance_sampling=CORRECTION, **given))
    known, checked = {field.name for field in dataclasses.fields(GRPOConfig)} | {"peft_config"}, set()
    values = given | {"mode": "token_mask", "clip_max": 3.0}
    for place, _, meaning in plugin_settings():
        setting = place.rpartition(".")[2]
        for theirs in re.findall(r"\(TRL: `(\w+)`\)", meaning) if "plugins.training" in place else ():
            assert theirs in known
            if setting in values:
                assert getattr(made, theirs) == values[setting]
                checked.add(setting)
    assert checked == values.keys() - {"warmup_fraction"}
    assert made.warmup_steps == 0.25  # TRL takes a number below 1 as a share

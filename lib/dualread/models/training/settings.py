"""What an actor's settings mean, for the trainer, the table of hyperparameters and `dualread plan`."""

import math
from typing import Any

from dualread import plugins
from dualread.declared.base import Settings
from dualread.errors import ConfigError

# Hyperparameters that no config entry changes, under TRL's names.
LOSS = "grpo"  # mean over the tokens of each completion, then over completions
ADVANTAGE_SCALE = "group"  # advantages are divided by the standard deviation within a prompt's completions
OPTIMIZER = "adamw_torch_fused"
SCHEDULE = "constant_with_warmup"
WEIGHTS = "float32"  # whatever the dtype of the forward pass: an update of 1e-6 is lost in bfloat16


def max_prompt_tokens(settings: Settings, backbone_settings: Settings) -> int:
    """Return the largest number of tokens in a training prompt, image tokens included.

    Args:
        settings: The actor's training settings (`dualread.study.training.training_settings`).
        backbone_settings: The `settings` of the backbone's config entry; their limit holds if `settings` has none.
    """
    return settings.get("max_prompt_tokens", backbone_settings["max_prompt_tokens"])


def rollouts_per_pass(settings: Settings) -> int:
    """Return the largest number of completions that the trained model samples at once."""
    return settings.get("rollouts_per_pass", settings["completions_per_pass"])


def engine_of(settings: Settings) -> dict[str, Any] | None:
    """Return the settings of the engine that samples for a training, with their defaults; None if the model samples."""
    if "rollouts" not in settings:
        return None
    defaults = plugins.declared("rollouts", settings["rollouts"], "DEFAULTS")
    return {**defaults, **settings.get("rollout_settings", {})}


def unfit_for_an_engine(settings: Settings) -> str | None:
    """Return why an engine cannot sample for a training with these settings; None if it can."""
    if settings["temperature"] != 1:
        return (
            f"temperature: {settings['temperature']}. Expected 1, because an engine gives log-probabilities before the"
            " temperature, and they are compared with those of the loss"
        )
    if "importance_sampling" in settings and settings["top_p"] != 1:
        return f"top_p: {settings['top_p']}. Expected 1, because importance_sampling needs what was sampled from"
    return None


def steps_of(settings: Settings, n_rows: int) -> int:
    """Return the number of optimizer steps: 3 passes over 4919 rows at 128 prompts per step are 117.

    Raises:
        ConfigError: Not exactly one of `steps` and `passes` is given.
    """
    if ("steps" in settings) == ("passes" in settings):
        raise ConfigError(
            f"actor settings: {sorted(settings)}. Expected either `steps` or `passes`, not both. Add or remove one."
        )
    return settings.get("steps") or math.ceil(settings["passes"] * math.ceil(n_rows / settings["prompts_per_step"]))

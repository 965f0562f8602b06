"""What an actor's settings mean, for the trainer, the table of hyperparameters and `dualread plan`."""

import math

from dualread.declared.base import Wire
from dualread.errors import ConfigError

# Hyperparameters that no config entry changes, under TRL's names.
LOSS = "grpo"  # mean over the tokens of each completion, then over completions
ADVANTAGE_SCALE = "group"  # advantages are divided by the standard deviation within a prompt's completions
OPTIMIZER = "adamw_torch_fused"
SCHEDULE = "constant_with_warmup"
WEIGHTS = "float32"  # whatever the dtype of the forward pass: an update of 1e-6 is lost in bfloat16


def max_prompt_tokens(settings: Wire, backbone_settings: Wire) -> int:
    """Return the largest number of tokens in a training prompt, image tokens included.

    Args:
        settings: The actor's training settings (`dualread.study.training.training_settings`).
        backbone_settings: The `settings` of the backbone's config entry; their limit holds if `settings` has none.
    """
    return settings.get("max_prompt_tokens", backbone_settings["max_prompt_tokens"])


def rollouts_per_pass(settings: Wire) -> int:
    """Return the largest number of completions that the trained model samples at once."""
    return settings.get("rollouts_per_pass", settings["completions_per_pass"])


def steps_of(settings: Wire, n_rows: int) -> int:
    """Return the number of optimizer steps: 3 passes over 4919 rows at 128 prompts per step are 117.

    Raises:
        ConfigError: Not exactly one of `steps` and `passes` is given.
    """
    if ("steps" in settings) == ("passes" in settings):
        raise ConfigError(
            f"actor settings: {sorted(settings)}. Expected either `steps` or `passes`, not both. Add or remove one."
        )
    return settings.get("steps") or math.ceil(settings["passes"] * math.ceil(n_rows / settings["prompts_per_step"]))

"""What an actor's settings leave to a default, for the trainer, the table of hyperparameters and `dualread plan`."""

from dualread.specs.parts import Settings


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

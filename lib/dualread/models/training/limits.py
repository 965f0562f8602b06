"""The longest prompt of an actor's training, for the trainer and for the table of hyperparameters."""

from dualread.specs.parts import Settings


def max_prompt_tokens(settings: Settings, backbone_settings: Settings) -> int:
    """Return the largest number of tokens in a training prompt, image tokens included.

    Args:
        settings: The actor's training settings (`dualread.study.training.training_settings`).
        backbone_settings: The `settings` of the backbone's config entry; their limit holds if `settings` has none.
    """
    return settings.get("max_prompt_tokens", backbone_settings["max_prompt_tokens"])

"""How long a prompt may be while an actor is trained; the trainer and the table of hyperparameters read it here."""

from collections.abc import Mapping
from typing import Any


def max_prompt_tokens(settings: Mapping[str, Any], backbone_settings: Mapping[str, Any]) -> int:
    """Return the largest number of tokens that a training prompt may have, its image included.

    Args:
        settings: What the actor is trained with (`dualread.study.training.training_settings`).
        backbone_settings: The `settings` of the backbone's config entry; they decide where `settings` has no limit.
    """
    return settings.get("max_prompt_tokens", backbone_settings["max_prompt_tokens"])

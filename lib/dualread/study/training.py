"""What an actor is trained with."""

from collections.abc import Mapping
from typing import Any


def training_settings(actor: Mapping[str, Any], backbone: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an actor's training on a backbone: the actor's, with the backbone's laid over them.

    Of two limits on the prompt the larger one counts: an actor with its own prompt may need more room than others.
    """
    both = (actor["settings"], backbone.get("training", {}))
    limits = [settings["max_prompt_tokens"] for settings in both if "max_prompt_tokens" in settings]
    return {**both[0], **both[1], **({"max_prompt_tokens": max(limits)} if limits else {})}

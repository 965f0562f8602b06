"""What an actor is trained with."""

from typing import Any

from dualread.declared.base import Wire


def training_settings(actor: Wire, backbone: Wire) -> dict[str, Any]:
    """Return the settings of an actor's training on a backbone: the actor's, with the backbone's laid over them.

    Of two limits on the prompt the larger one counts: an actor with its own prompt may need more room than others.
    """
    both = (actor, backbone)
    limits = [settings["max_prompt_tokens"] for settings in both if "max_prompt_tokens" in settings]
    return {**both[0], **both[1], **({"max_prompt_tokens": max(limits)} if limits else {})}

"""A checkpoint in memory: the model, what encodes its prompts, and the ids that end or may not be in a completion."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dualread.models.backbones.checkpoint import load
from dualread.models.backbones.encode import Encoder
from dualread.models.backbones.processor import forbidden_token_ids, load_processor
from dualread.models.replay.positions import Positions, locate
from dualread.schema.base import Wire
from dualread.schema.recorded import USUAL, Facts


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A checkpoint in memory, on the GPU if there is one.

    Attributes:
        model: The model in evaluation mode.
        encoder: Encodes its prompts.
        stop: Ids that end a turn.
        forbidden: Ids that a completion may never contain.
        thinking_ends: What ends the thinking of its completions before an answer; None where they do not think.
    """

    model: Any
    encoder: Encoder
    stop: frozenset[int]
    forbidden: tuple[int, ...]
    thinking_ends: str | None = None

    def locate(self, completion: Sequence[int]) -> Positions:
        """Return the positions that are read in a completion."""
        return locate(completion, self.encoder.decode, self.stop, self.thinking_ends)

    @classmethod
    def of(cls, model: Any, processor: Any, settings: Wire, facts: Facts = USUAL) -> "Opened":
        """Return a model that is in memory, and its processor, as an opened checkpoint."""
        ends = model.generation_config.eos_token_id
        stop = frozenset(ends if isinstance(ends, list) else [ends])
        return cls(
            model=model,
            encoder=Encoder(processor, model.config, settings, facts),
            stop=stop,
            forbidden=forbidden_token_ids(processor, model.config, stop, settings.get("forbidden_tokens", ())),
        )

    def with_facts(self, facts: Facts) -> "Opened":
        """Return the same checkpoint, whose rows are read as `facts` say."""
        encoder = copy.copy(self.encoder)
        encoder.facts = facts
        return replace(self, encoder=encoder)


def open_checkpoint(checkpoint: Path, settings: Wire, facts: Facts = USUAL) -> Opened:
    """Load `checkpoint` for generation or replay."""
    import torch

    processor = load_processor(checkpoint, settings)
    model: Any = load(checkpoint, settings)
    if "quantization" not in settings:  # such a model is where it was quantized
        model = model.to("cuda" if torch.cuda.is_available() else "cpu")
    return Opened.of(model, processor, settings, facts)

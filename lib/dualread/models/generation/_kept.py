"""Keeps the states of a batch while `transformers_engine` completes it, and gives them to what collects them."""

from collections.abc import Sequence
from typing import Any

import torch

from dualread.models.actor import Collecting, PassStates
from dualread.models.backbones import parts
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.backbones.opened import Opened
from dualread.models.generation._states import CachedStates, Rows
from dualread.schema.answers import Decoding


class Kept:
    """The states of one batch, with one completion per prompt.

    They take less memory than the keys and values of the same tokens, which are those of all layers.

    Attributes:
        layers: Layers, 1-based, whose states are kept besides those of the last one.
    """

    def __init__(self, opened: Opened, prompts: Sequence[EncodedPrompt], decoding: Decoding, collecting: Collecting):
        text = opened.model.config.get_text_config()
        self.layers = collecting.layers(text.num_hidden_layers)
        self._opened, self._prompts, self._collecting = opened, prompts, collecting
        shape = (len(prompts), decoding.max_completion_tokens + 1, text.hidden_size)
        like = {"dtype": opened.model.dtype, "device": opened.model.device}
        self._final = torch.empty(shape, **like)
        self._layers = {layer: torch.empty(shape, **like) for layer in self.layers}
        self._images: list[torch.Tensor] = []

    def take(self, step: int, at: torch.Tensor, states: Rows | CachedStates) -> None:
        """Keep the states from which the token `step` of the rows `at` is chosen."""
        if step == 0:
            self._images = states.images
        self._final[at, step] = states.last
        if step:  # column t of a layer is of token t of the completion
            for layer, of_rows in states.layers.items():
                self._layers[layer][at, step - 1] = of_rows

    def read(self, completions: Sequence[Sequence[int]]) -> list[Any]:
        """Return what is collected of each completion."""
        rows = [
            PassStates(
                n_prompt_tokens=len(prompt.token_ids),
                final=self._final[i, : len(ids) + 1],
                layers={layer: states[i, : len(ids)] for layer, states in self._layers.items()},
                image=self._images[i],
            )
            for i, (prompt, ids) in enumerate(zip(self._prompts, completions, strict=True))
        ]
        opened = self._opened
        logits = parts.head(opened.model, torch.float32)
        return self._collecting.read(rows, completions, logits, opened.encoder.decode, opened.stop, opened.forbidden)

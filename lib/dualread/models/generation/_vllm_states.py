"""The final-layer states that vLLM computes while it answers, so that nobody has to read an answer a second time.

vLLM's runner has the states of all tokens of a step, after the final norm, before it computes logits of those from
which it samples. They are looked at there, around the model's forward and outside its CUDA graph. What is kept stays on
the device until it is asked for. A prefix that vLLM has in its cache is not computed again, so that the states of
images are kept here as well.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dualread.errors import ConfigError
from dualread.models.actor import PassStates
from dualread.models.backbones.encode import EncodedPrompt

_IMAGES = 256  # whose states are kept; about a megabyte each


def image_spans(prompt: EncodedPrompt, image_token: int) -> list[tuple[int, int]]:
    """Return (first token, number of tokens) of each image of a prompt."""
    at = [i for i, token in enumerate(prompt.token_ids[: prompt.n_turn]) if token == image_token]
    if not at:
        return []
    firsts = [k for k, i in enumerate(at) if k == 0 or i != at[k - 1] + 1]
    return [(at[k], end - k) for k, end in zip(firsts, [*firsts[1:], len(at)], strict=True)]


@dataclass(kw_only=True)
class _Kept:
    """The states of one request."""

    start: int
    """The last token of the prompt: from here on, all states are kept."""
    first: int
    """The first token of the image."""
    n_image: int
    key: Hashable
    image: Any = None
    """[M, D], filled as its tokens are read."""
    seen: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    at: dict[int, tuple[Any, Any, int]] = field(default_factory=dict)
    """Where the state of a token is: a tensor, the same of the inner layer, and its row there."""


class AnswerStates:
    """Keeps the states of the requests that it is told to, as the `runner` of vLLM's worker computes them.

    One image per request at most, whose states depend on nothing behind it.
    """

    def __init__(self, runner: Any, image_token: int):
        self._runner, self._image_token, self._forward = runner, image_token, runner._model_forward
        self._layer, self._hook, self._inner = None, None, None
        self._kept: dict[str, _Kept] = {}
        self._images: OrderedDict[Hashable, Any] = OrderedDict()
        runner._model_forward = self._watched

    def keep_layer(self, layer: int | None) -> None:
        """From now on, also keep the states of a layer, 1-based, besides those of the last one; None for no other.

        Raises:
            ConfigError: vLLM runs CUDA graphs, from whose inside nothing can be taken.
        """
        if self._hook is not None:
            self._hook.remove()
        self._layer, self._hook = layer, None
        if layer is None:
            return
        if not self._runner.model_config.enforce_eager:
            raise ConfigError(
                "generation.settings.eager: is not set, but a method reads the states of an inner layer (h_mid)."
                " Expected `true` with `replay.from`, because vLLM's CUDA graphs show the last layer alone. Set it,"
                " leave the method out, or leave out `replay.from`."
            )
        layers = self._runner.get_model().get_language_model().model.layers
        self._hook = layers[layer - 1].register_forward_hook(self._note_inner)

    @property
    def n_kept(self) -> int:
        """Number of requests whose states are kept."""
        return len(self._kept)

    def will_have_image(self, prompt: EncodedPrompt) -> bool:
        """Return whether the states of the prompt's image are here, or come from another request that is answered."""
        key = self._key(prompt)
        return not prompt.image_sha256 or key in self._images or any(kept.key == key for kept in self._kept.values())

    def keep(self, name: str, prompt: EncodedPrompt) -> None:
        """Keep the states of the request that the engine knows by `name`."""
        [(first, n)], key = image_spans(prompt, self._image_token) or [(0, 0)], self._key(prompt)
        known = self._images.get(key)
        kept = _Kept(start=len(prompt.token_ids) - 1, first=first, n_image=n, key=key, image=known)
        kept.seen = np.full(n, known is not None)
        self._kept[name] = kept

    def go_on(self, name: str, other: str) -> None:
        """Keep the states of `other`, which reads the same tokens and more, where those of `name` are."""
        self._kept[other] = self._kept.pop(name)

    def forget(self, name: str) -> None:
        """Drop the states of a request; an unknown one is ignored."""
        self._kept.pop(name, None)

    def state(self, name: str, position: int) -> Any:
        """Return the state of the token at a position of prompt and completion [D]; None if it was not computed."""
        kept = self._kept[name].at.get(position)
        return None if kept is None else kept[0][kept[2]]

    def has_image(self, name: str) -> bool:
        """Return whether the states of the image's tokens were computed, or there is no image."""
        return bool(self._kept[name].seen.all())

    def of_pass(self, name: str, n_prompt_tokens: int, n_tokens: int) -> PassStates:
        """Return the states of a request's prompt and completion; that of the last token is left out if unknown."""
        import torch

        at, image = self._kept[name].at, self._kept[name].image
        places = [at[p] for p in range(n_prompt_tokens - 1, n_prompt_tokens + n_tokens) if p in at]
        assert len(places) >= n_tokens, f"{name}: vLLM has not computed all states of an answer"
        final = torch.stack([states[k] for states, _, k in places])
        layers = {} if self._layer is None else {self._layer: torch.stack([inner[k] for _, inner, k in places[1:]])}
        return PassStates(
            n_prompt_tokens=n_prompt_tokens, final=final, layers=layers, image=final[:0] if image is None else image
        )

    def _note_inner(self, layer: Any, inputs: Any, output: Any) -> None:
        """Note what comes out of a layer; most give what they add, and what it is added to."""
        self._inner = output[0] + output[1] if isinstance(output, tuple) else output

    def _watched(self, *inputs: Any, **named: Any) -> Any:
        output = self._forward(*inputs, **named)
        if not self._kept:
            return output
        states = output[0] if isinstance(output, tuple) else output
        runner, batch = self._runner, self._runner.input_batch
        ends = runner.query_start_loc.np
        rows: list[int] = []
        whose: list[tuple[_Kept, int]] = []
        for i, name in enumerate(batch.req_ids[: batch.num_reqs]):
            if (kept := self._kept.get(name)) is None:
                continue
            row, end, position = int(ends[i]), int(ends[i + 1]), int(batch.num_computed_tokens_cpu[i])
            if not kept.seen.all():
                self._take_image(kept, states[row:end], position)
            skipped = max(0, kept.start - position)
            for k in range(row + skipped, end):
                rows.append(k)
                whose.append((kept, position + k - row))
        if rows:
            together = _copied(states, rows)  # the next step writes into the same tensor
            inner = None if self._layer is None else _copied(self._inner, rows)
            for k, (kept, position) in enumerate(whose):
                kept.at[position] = (together, inner, k)
        return output

    def _key(self, prompt: EncodedPrompt) -> Hashable:
        """Return all that the states of the image depend on: its content, and the tokens up to its last one."""
        [(first, n)] = image_spans(prompt, self._image_token) or [(0, 0)]
        return prompt.image_sha256, tuple(prompt.token_ids[: first + n])

    def _take_image(self, kept: _Kept, states: Any, position: int) -> None:
        """Copy the states of the image's tokens among those of a step; the first is that of the token at `position`."""
        low, high = max(kept.first, position), min(kept.first + kept.n_image, position + len(states))
        if low >= high:
            return
        if kept.image is None:
            kept.image = states.new_empty((kept.n_image, states.shape[-1]))
        kept.image[low - kept.first : high - kept.first] = states[low - position : high - position]
        kept.seen[low - kept.first : high - kept.first] = True
        if kept.seen.all():
            self._images[kept.key] = kept.image
            for other in self._kept.values():  # vLLM may not compute it for them
                if other.key == kept.key and not other.seen.all():
                    other.image, other.seen = kept.image, kept.seen
            if len(self._images) > _IMAGES:
                self._images.popitem(last=False)


def _copied(states: Any, rows: list[int]) -> Any:
    """Return a copy of ascending rows; those of a step without prompts lie together, and need no ids on the device."""
    together = rows[-1] - rows[0] + 1 == len(rows)
    return states[rows[0] : rows[-1] + 1].clone() if together else states[rows]

"""The keys and values of a batch of rows, to which one token per row is added again and again.

Prompts are read a few at a time (`models/prefixes.py`). Tokens are added to all rows at once, to buffers with room for
all of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import Cache, DynamicLayer

from dualread.models.actor import ClaimSpan, Collecting, PassStates
from dualread.models.backbones import parts
from dualread.models.backbones.checkpoint import Opened
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.backbones.parts import keeping
from dualread.models.prefixes import read_rows


@dataclass(frozen=True, kw_only=True)
class Ready:
    """Prompts that were read in one pass, those `at` these positions of the batch; all end in the last column.

    `cache` has the keys and values of all columns, even where a layer has a sliding window; `last` the final-layer
    states of the last tokens [n, D]; `mask` is 1 for a token and 0 on the left of a shorter prompt [n, columns];
    `offsets` is what to add to the column of a later token to get its position [n]; `images` the final-layer states of
    the image tokens of each [M, D].
    """

    at: list[int]
    cache: DynamicCache
    last: torch.Tensor
    mask: torch.Tensor
    offsets: torch.Tensor
    images: list[torch.Tensor]


def read_prompts(opened: Opened, prompts: Sequence[EncodedPrompt], *, room: int = 0) -> Iterator[Ready]:
    """Read `prompts` a few at a time; all end in the same column. `room` tokens will be added to each."""
    ids, device = [prompt.token_ids for prompt in prompts], opened.model.device
    width = max(map(len, ids))
    for read in read_rows(opened, prompts, ids, room=room):
        lengths = torch.tensor([len(ids[i]) for i in read.rows], device=device)
        columns = torch.arange(width, device=device) - (width - lengths)[:, None]
        for layer in read.cache.layers:
            layer.keys, layer.values = (
                tensor.take_along_dim(columns.clamp(min=0)[:, None, :, None], dim=2)
                for tensor in (layer.keys, layer.values)
            )
        yield Ready(
            at=read.rows,
            cache=read.cache,
            last=read.states[torch.arange(len(read.rows), device=device), lengths - 1 - read.start],
            mask=(columns >= 0).long(),
            offsets=read.offsets - (width - lengths),
            images=read.image_states,
        )


class Rows:
    """The same as `CachedStates` for models whose rows share nothing: a whole row is read again for each token."""

    def __init__(self, opened: Opened, prompts: Sequence[EncodedPrompt], layers: Sequence[int] = ()):
        self._opened, self._prompts, self._layers = opened, list(prompts), layers
        self._read()

    def select(self, rows: torch.Tensor) -> None:
        """Keep the rows at these positions."""
        self._prompts = [self._prompts[i] for i in rows.tolist()]
        self.last = self.last[rows]

    def append(self, tokens: torch.Tensor) -> None:
        """Read one more token per row; `tokens` holds their ids [rows]."""
        self._prompts = [row.followed_by([token]) for row, token in zip(self._prompts, tokens.tolist(), strict=True)]
        self._read()

    def _read(self) -> None:
        ids = [row.token_ids for row in self._prompts]
        reads = list(read_rows(self._opened, self._prompts, ids, layers=self._layers))
        self.last = torch.cat([read.states[:, -1] for read in reads])
        self.layers = {n: torch.cat([read.layers[n][:, -1] for read in reads]) for n in self._layers}
        self.images = [states for read in reads for states in read.image_states]


class CachedStates:
    """The cached keys and values of a batch of rows, and the final-layer state of each row's last token.

    `prompt_indices` is the position of each row's prompt in `prompts`, each of which is read once; `room` the number of
    tokens per row that will be appended; `layers` are those whose states are wanted besides those of the last one.

    Attributes:
        last: Final-layer states of the last tokens [rows, D].
        layers: States of the tokens that were appended last in each wanted layer [rows, D], by its number.
        images: Final-layer states of the image tokens of each row [M, D].
    """

    def __init__(
        self,
        opened: Opened,
        prompts: Sequence[EncodedPrompt],
        prompt_indices: Sequence[int],
        *,
        room: int,
        layers: Sequence[int] = (),
    ):
        self._model, device = opened.model, opened.model.device
        self._layers, self._kept = layers, keeping(layers)
        self.layers: dict[int, torch.Tensor] = {}
        images: dict[int, torch.Tensor] = {}
        width = max(len(prompt.token_ids) for prompt in prompts)
        prompt_of_row = torch.tensor(prompt_indices, device=device)
        cached: list[Any] = []
        parts: dict[int, tuple[torch.Tensor, ...]] = {}
        for read in read_prompts(opened, prompts):
            cached = cached or [_Layer(layer, len(prompt_indices), room) for layer in read.cache.layers]
            position = torch.full((len(prompts),), -1, device=device)
            position[read.at] = torch.arange(len(read.at), device=device)
            rows = (position[prompt_of_row] >= 0).nonzero()[:, 0]
            for layer, of_prompts in zip(cached, read.cache.layers, strict=True):
                layer.fill(rows, of_prompts, position[prompt_of_row[rows]])
            parts |= dict(zip(read.at, zip(read.last, read.mask, read.offsets, strict=True), strict=True))
            images |= zip(read.at, read.images, strict=True)
        self.images = [images[i] for i in prompt_indices]
        self._cache = Cache(layers=list(cached))
        in_order = zip(*(parts[i] for i in range(len(prompts))), strict=True)
        self.last, mask, self._offsets = (torch.stack(tensors)[prompt_of_row] for tensors in in_order)
        self._mask = torch.nn.functional.pad(mask, (0, room), value=1)
        self._n_columns = width

    def select(self, rows: torch.Tensor) -> None:
        """Keep the rows at these positions."""
        self._cache.batch_select_indices(rows)
        self.last, self._mask, self._offsets = self.last[rows], self._mask[rows], self._offsets[rows]

    def append(self, tokens: torch.Tensor) -> None:
        """Read one more token per row; `tokens` holds their ids [rows]."""
        output = self._model.model(
            input_ids=tokens[:, None],
            attention_mask=self._mask[:, : self._n_columns + 1],
            position_ids=(self._n_columns + self._offsets)[:, None],
            past_key_values=self._cache,
            use_cache=True,
            **self._kept,
        )
        self._n_columns += 1
        self.last = output.last_hidden_state[:, -1]
        self.layers = {n: output.hidden_states[n][:, -1] for n in self._layers}


class _Layer(DynamicLayer):
    """Keys and values of one layer, in buffers [rows, heads, columns, width of a head].

    `keys` and `values` show the columns in use. The base class would copy all of them for every token.
    """

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, like: Any, n_rows: int, room: int):
        super().__init__()
        self.lazy_initialization(like.keys, like.values)
        _, heads, columns, size = like.keys.shape
        self._buffers = [tensor.new_empty(n_rows, heads, columns + room, size) for tensor in (like.keys, like.values)]
        self._show(columns)

    def fill(self, rows: torch.Tensor, of_prompts: Any, prompts: torch.Tensor) -> None:
        """Copy the keys and values of the prompts at the positions `prompts` to `rows`."""
        self.keys[rows], self.values[rows] = of_prompts.keys[prompts], of_prompts.values[prompts]

    def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        before = self.get_seq_length()
        self._show(before + key_states.shape[2])
        self.keys[:, :, before:], self.values[:, :, before:] = key_states, value_states
        return self.keys, self.values

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        columns = self.get_seq_length()
        self._buffers = [buffer[indices] for buffer in self._buffers]
        self._show(columns)

    def _show(self, columns: int) -> None:
        self.keys, self.values = (buffer[:, :, :columns] for buffer in self._buffers)


class Kept:
    """The states of one batch, a completion of each of `prompts`, of which some may be the same.

    They take less memory than the keys and values of the same tokens, which are those of all layers.
    """

    def __init__(self, opened: Opened, prompts: Sequence[EncodedPrompt], n_tokens: int, collecting: Collecting):
        text = opened.model.config.get_text_config()
        self.layers = collecting.layers(text.num_hidden_layers)
        self._opened, self._prompts, self._collecting = opened, prompts, collecting
        shape = (len(prompts), n_tokens + 1, text.hidden_size)
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

    def read(
        self, completions: Mapping[int, Sequence[int]], claims: Sequence[Sequence[ClaimSpan]] | None = None
    ) -> list[Any]:
        """Return what is collected of completions, each of which belongs to a row; `claims` as in `Collecting.read`."""
        rows = [
            PassStates(
                n_prompt_tokens=len(self._prompts[i].token_ids),
                final=self._final[i, : len(ids) + 1],
                layers={layer: states[i, : len(ids)] for layer, states in self._layers.items()},
                image=self._images[i],
            )
            for i, ids in completions.items()
        ]
        opened, made = self._opened, list(completions.values())
        return self._collecting.read(rows, made, parts.head(opened.model, torch.float32), opened.encoder, claims)

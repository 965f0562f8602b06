"""The keys and values of a batch of rows, to which one token per row is added again and again.

Prompts are read a few at a time, because the intermediate results of more would not fit into a processor's caches.
Tokens are added to all rows at once, to buffers with room for all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import Cache, DynamicLayer

from dualread.models.backbones.encode import Encoder, Prompt

_TOKENS_PER_PASS = 1536


def passes(n_prompts: int, width: int) -> list[range]:
    """Return the positions of the prompts to read in each pass, if each has `width` columns."""
    size = max(1, _TOKENS_PER_PASS // width)
    return [range(start, min(start + size, n_prompts)) for start in range(0, n_prompts, size)]


@dataclass(frozen=True, kw_only=True)
class Read:
    """Prompts that were read in one pass.

    Attributes:
        cache: Their keys and values, of all columns even where a layer has a sliding window.
        last: Final-layer states of their last tokens [n, D].
        mask: Their attention mask [n, columns].
        offsets: What to add to the column of a later token to get its position [n].
    """

    cache: DynamicCache
    last: torch.Tensor
    mask: torch.Tensor
    offsets: torch.Tensor


def read_prompts(
    model: Any, encoder: Encoder, prompts: Sequence[Prompt], image_arguments: Mapping[str, Any], width: int
) -> Read:
    """Read `prompts`, padded on the left to `width` columns."""
    batch = {name: tensor.to(model.device) for name, tensor in encoder.batch(prompts, width=width).items()}
    cache = DynamicCache()
    output = model.model(**batch, **image_arguments, past_key_values=cache, use_cache=True)
    mask = batch["attention_mask"]
    offsets = encoder.backbone.position_offsets(model, mask)
    return Read(cache=cache, last=output.last_hidden_state[:, -1], mask=mask, offsets=offsets)


class States:
    """The cached keys and values of a batch of rows, and the final-layer state of each row's last token.

    Args:
        model: The model in evaluation mode.
        encoder: The encoder of its checkpoint.
        prompts: The prompts, each of which is read once.
        of: For each row, the position of its prompt in `prompts`.
        room: Number of tokens per row that will be appended.

    Attributes:
        last: Final-layer states of the last tokens [rows, D].
    """

    def __init__(self, model: Any, encoder: Encoder, prompts: Sequence[Prompt], of: Sequence[int], *, room: int):
        self._model = model
        width = max(len(prompt.token_ids) for prompt in prompts)
        shown = encoder.encode_images(model, prompts)
        prompt_of_row = torch.tensor(of, device=model.device)
        layers: list[Any] = []
        parts = []
        for part in passes(len(prompts), width):
            read = read_prompts(model, encoder, [prompts[i] for i in part], shown(part), width)
            layers = layers or [_Layer(layer, len(of), room) for layer in read.cache.layers]
            rows = ((prompt_of_row >= part.start) & (prompt_of_row < part.stop)).nonzero()[:, 0]
            for layer, of_prompts in zip(layers, read.cache.layers, strict=True):
                layer.fill(rows, of_prompts, prompt_of_row[rows] - part.start)
            parts.append((read.last, read.mask, read.offsets))
        self._cache = Cache(layers=list(layers))
        self.last, mask, self._offsets = (torch.cat(tensors)[prompt_of_row] for tensors in zip(*parts, strict=True))
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
        )
        self._n_columns += 1
        self.last = output.last_hidden_state[:, -1]


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

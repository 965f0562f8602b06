"""Reads rows a few at a time; what the prompts of several rows share is read once, as far as the model allows it.

In most models the states of a prompt up to its last image token depend on nothing after it, so prompts about one image
share them. Where a prompt's tokens see each other in both directions, rows share whole prompts. Where keys and values
are not all that a model remembers, each row is read alone. `facts.Facts.shared` says which of these is right.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dualread.models.backbones import parts
from dualread.models.backbones.encode import Encoder, Prompt
from dualread.models.backbones.facts import READS

PASS_TOKENS = 1536  # with more in one pass, intermediate results do not fit into a processor's caches
IMAGE_PREFIX, _, NOTHING = READS


@dataclass(frozen=True, kw_only=True)
class Read:
    """Rows that were read in one pass.

    Attributes:
        rows: Their positions in the batch.
        start: The token whose state comes first.
        states: Final-layer states [n, columns, D], padded on the right: column c is of token `start` + c.
        middle: States of the wanted layer [n, columns - 1, D]: column c is of token `start` + 1 + c; None if unwanted.
        image_states: Final-layer states of the image tokens of each row [M, D].
        offsets: What to add to the column of a later token to get its position [n].
        cache: Keys and values of all columns of every layer; None where nothing is shared.
    """

    rows: list[int]
    start: int
    states: Any
    middle: Any
    image_states: list[Any]
    offsets: Any
    cache: Any


@dataclass(frozen=True, kw_only=True)
class _Prefixes:
    """Distinct prefixes of one length, read in one pass.

    Attributes:
        length: Number of tokens of each prefix.
        row: The row of each prompt (its position in the batch) in the tensors below.
        layers: Keys and values of each layer, [prefixes, heads, length, width of a head] each.
        offsets: What to add to the column of a later token to get its position [prefixes].
        image_states: Final-layer states of the image tokens of each prefix [M, D].
        last: Final-layer state of the last token of each prefix [prefixes, D].
    """

    length: int
    row: dict[int, int]
    layers: list[tuple[Any, Any]]
    offsets: Any
    image_states: list[Any]
    last: Any


def read_rows(
    model: Any,
    encoder: Encoder,
    prompts: Sequence[Prompt],
    ids: Sequence[Sequence[int]],
    *,
    room: int = 0,
    layer: int | None = None,
) -> Iterator[Read]:
    """Read the rows of a batch: what they share once, then what follows it in each row.

    Args:
        model: The model in evaluation mode.
        encoder: The encoder of its checkpoint.
        prompts: The prompt of each row.
        ids: The tokens of each row: its prompt, and whatever follows it.
        room: Number of tokens by which the caller extends every row of a pass.
        layer: A layer whose states are wanted besides those of the last one.
    """
    if encoder.facts.shared == NOTHING:
        yield from (_read_alone(model, encoder, prompts[i], ids[i], i, layer) for i in range(len(prompts)))
        return
    for prefixes in _read_prefixes(model, encoder, prompts):
        n_left = {i: len(ids[i]) - prefixes.length + room for i in prefixes.row}
        rows: list[int] = []
        for row in sorted(n_left, key=lambda i: (n_left[i], i)):
            if rows and n_left[row] * (len(rows) + 1) > PASS_TOKENS:
                yield _read_rest(model, encoder, prefixes, rows, ids, layer)
                rows = []
            rows.append(row)
        yield _read_rest(model, encoder, prefixes, rows, ids, layer)


def _read_alone(model: Any, encoder: Encoder, prompt: Prompt, ids: Sequence[int], row: int, layer: int | None) -> Read:
    whole = replace(prompt, token_ids=tuple(ids))
    batch = {name: tensor.to(model.device) for name, tensor in encoder.batch([whole]).items()}
    images = encoder.shared_images(model, [whole])
    wanted = {} if layer is None else {"output_hidden_states": [layer]}
    output = model.model(**batch, **images, **wanted, use_cache=False)
    states, is_image = output.last_hidden_state, batch["input_ids"] == encoder.image_token_id
    return Read(
        rows=[row],
        start=0,
        states=states,
        middle=None if layer is None else output.hidden_states[layer][:, 1:],
        image_states=[states[is_image[:, : prompt.n_turn].nonzero(as_tuple=True)]],
        offsets=None,
        cache=None,
    )


def _read_prefixes(model: Any, encoder: Encoder, prompts: Sequence[Prompt]) -> Iterator[_Prefixes]:
    """Read the prefixes of `prompts`, each distinct one once, and yield those of each pass."""
    by_length: dict[int, dict[tuple[str, tuple[int, ...]], list[int]]] = {}
    for i, prompt in enumerate(prompts):
        ids, length = prompt.token_ids, prompt.n_turn
        if encoder.facts.shared == IMAGE_PREFIX:
            length -= ids[length - 1 :: -1].index(encoder.image_token_id)
        by_length.setdefault(length, {}).setdefault((prompt.image_sha256, ids[:length]), []).append(i)
    for length, sharing in by_length.items():
        distinct = list(sharing.values())
        size = max(1, PASS_TOKENS // length) if encoder.facts.images_once else 1
        for start in range(0, len(distinct), size):
            yield _read_prefix(model, encoder, prompts, length, distinct[start : start + size])


def _read_prefix(
    model: Any, encoder: Encoder, prompts: Sequence[Prompt], length: int, rows: Sequence[Sequence[int]]
) -> _Prefixes:
    from transformers import DynamicCache

    cut = [replace(prompts[first], token_ids=prompts[first].token_ids[:length]) for first, *_ in rows]
    batch = {name: tensor.to(model.device) for name, tensor in encoder.batch(cut).items()}
    cache: Any = DynamicCache()  # without sliding windows: it keeps all columns of every layer
    images = encoder.shared_images(model, cut)
    with parts.positions(model) as seen:
        states = model.model(**batch, **images, past_key_values=cache, use_cache=True).last_hidden_state
    is_image = batch["input_ids"] == encoder.image_token_id
    return _Prefixes(
        length=length,
        row={i: k for k, sharing in enumerate(rows) for i in sharing},
        layers=[(layer.keys, layer.values) for layer in cache.layers],
        offsets=parts.position_offsets(seen, batch["input_ids"]),
        image_states=[of_row[at] for of_row, at in zip(states, is_image, strict=True)],
        last=states[:, -1],
    )


def _read_rest(
    model: Any,
    encoder: Encoder,
    prefixes: _Prefixes,
    rows: list[int],
    ids: Sequence[Sequence[int]],
    layer: int | None,
) -> Read:
    import torch
    from transformers import DynamicCache

    start = prefixes.length
    left = [ids[i][start:] for i in rows]
    at = torch.tensor([prefixes.row[i] for i in rows], device=model.device)
    cache = DynamicCache([(keys[at], values[at]) for keys, values in prefixes.layers])
    states, middle = prefixes.last[at, None], None
    if width := max(map(len, left)):
        tokens = torch.full((len(rows), width), encoder.tokenizer.pad_token_id)
        mask = torch.zeros((len(rows), start + width), dtype=torch.long)
        for k, of_row in enumerate(left):
            tokens[k, : len(of_row)] = torch.tensor(of_row)
            mask[k, : start + len(of_row)] = 1
        wanted = {} if layer is None else {"output_hidden_states": [layer]}
        output = model.model(
            input_ids=tokens.to(model.device),
            attention_mask=mask.to(model.device),
            position_ids=torch.arange(start, start + width, device=model.device) + prefixes.offsets[at, None],
            past_key_values=cache,
            use_cache=True,
            **wanted,
        )
        states = torch.cat([states, output.last_hidden_state], dim=1)
        middle = None if layer is None else output.hidden_states[layer]
    return Read(
        rows=rows,
        start=start - 1,
        states=states,
        middle=middle,
        image_states=[prefixes.image_states[prefixes.row[i]] for i in rows],
        offsets=prefixes.offsets[at],
        cache=cache,
    )

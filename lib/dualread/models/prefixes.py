"""Reads rows a few at a time; what prompts about one image share, up to and with the last image token, is read once.

No other token of a prompt may come before an image token, so the states of the image tokens depend on nothing else.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dualread.models.backbones import parts
from dualread.models.backbones.encode import Encoder, Prompt

PASS_TOKENS = 1536  # with more in one pass, intermediate results do not fit into a processor's caches


@dataclass(frozen=True, kw_only=True)
class Prefixes:
    """Distinct prefixes of one length, read in one pass.

    Attributes:
        length: Number of tokens of each prefix.
        row: The row of each prompt (its position in the batch) in the tensors below.
        layers: Keys and values of each layer, [prefixes, heads, length, width of a head] each.
        offsets: What to add to the column of a later token to get its position [prefixes].
        image_states: Final-layer states of the image tokens of each prefix [M, D].
    """

    length: int
    row: dict[int, int]
    layers: list[tuple[Any, Any]]
    offsets: Any
    image_states: list[Any]


def read_rows(
    model: Any,
    encoder: Encoder,
    prompts: Sequence[Prompt],
    ids: Sequence[Sequence[int]],
    *,
    room: int = 0,
    **wanted: Any,
) -> Iterator[tuple[Prefixes, list[int], Any]]:
    """Read the rows of a batch: each distinct prefix once, then what follows it in each row.

    Args:
        model: The model in evaluation mode.
        encoder: The encoder of its checkpoint.
        prompts: The prompt of each row.
        ids: The tokens of each row: its prompt, and whatever follows it.
        room: Number of tokens by which the caller extends every row of a pass.
        wanted: Further arguments of the model, such as `output_hidden_states`.

    Yields:
        Of each pass, the prefixes, the positions of its rows in the batch, and the model's output for what follows the
        prefixes, padded on the right: column c of its states is token `length` + c of a row. Its `past_key_values` have
        the columns of the prefix, too.
    """
    for prefixes in _read_prefixes(model, encoder, prompts):
        n_left = {i: len(ids[i]) - prefixes.length + room for i in prefixes.row}
        rows: list[int] = []
        for row in sorted(n_left, key=lambda i: (n_left[i], i)):
            if rows and n_left[row] * (len(rows) + 1) > PASS_TOKENS:
                yield prefixes, rows, _read_rest(model, encoder, prefixes, rows, ids, wanted)
                rows = []
            rows.append(row)
        yield prefixes, rows, _read_rest(model, encoder, prefixes, rows, ids, wanted)


def _read_prefixes(model: Any, encoder: Encoder, prompts: Sequence[Prompt]) -> Iterator[Prefixes]:
    """Read the prefixes of `prompts`, each distinct one once, and yield those of each pass."""
    by_length: dict[int, dict[tuple[str, tuple[int, ...]], list[int]]] = {}
    for i, prompt in enumerate(prompts):
        ids = prompt.token_ids
        length = len(ids) - ids[::-1].index(encoder.image_token_id)
        by_length.setdefault(length, {}).setdefault((prompt.image_sha256, ids[:length]), []).append(i)
    for length, sharing in by_length.items():
        distinct = list(sharing.values())
        size = max(1, PASS_TOKENS // length)
        for start in range(0, len(distinct), size):
            yield _read_prefix(model, encoder, prompts, length, distinct[start : start + size])


def _read_prefix(
    model: Any, encoder: Encoder, prompts: Sequence[Prompt], length: int, rows: Sequence[Sequence[int]]
) -> Prefixes:
    from transformers import DynamicCache

    cut = [replace(prompts[first], token_ids=prompts[first].token_ids[:length]) for first, *_ in rows]
    batch = {name: tensor.to(model.device) for name, tensor in encoder.batch(cut).items()}
    cache: Any = DynamicCache()  # without sliding windows: it keeps all columns of every layer
    images = encoder.shared_images(model, cut)
    with parts.positions(model) as seen:
        states = model.model(**batch, **images, past_key_values=cache, use_cache=True).last_hidden_state
    is_image = batch["input_ids"] == encoder.image_token_id
    return Prefixes(
        length=length,
        row={i: k for k, sharing in enumerate(rows) for i in sharing},
        layers=[(layer.keys, layer.values) for layer in cache.layers],
        offsets=parts.position_offsets(seen, batch["input_ids"]),
        image_states=[of_row[at] for of_row, at in zip(states, is_image, strict=True)],
    )


def _read_rest(
    model: Any,
    encoder: Encoder,
    prefixes: Prefixes,
    rows: Sequence[int],
    ids: Sequence[Sequence[int]],
    wanted: Mapping[str, Any],
) -> Any:
    import torch
    from transformers import DynamicCache

    start = prefixes.length
    left = [ids[i][start:] for i in rows]
    width = max(map(len, left))
    tokens = torch.full((len(rows), width), encoder.tokenizer.pad_token_id)
    mask = torch.zeros((len(rows), start + width), dtype=torch.long)
    for k, of_row in enumerate(left):
        tokens[k, : len(of_row)] = torch.tensor(of_row)
        mask[k, : start + len(of_row)] = 1
    at = torch.tensor([prefixes.row[i] for i in rows], device=model.device)
    return model.model(
        input_ids=tokens.to(model.device),
        attention_mask=mask.to(model.device),
        position_ids=torch.arange(start, start + width, device=model.device) + prefixes.offsets[at, None],
        past_key_values=DynamicCache([(keys[at], values[at]) for keys, values in prefixes.layers]),
        use_cache=True,
        **wanted,
    )

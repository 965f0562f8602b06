"""The tokens that prompts about one image share: up to and with the last image token. They are read once per image.

No other token of a prompt may come before an image token, so the states of the image tokens depend on nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dualread.models.backbones.encode import Encoder, Prompt

PASS_TOKENS = 1536  # with more in one pass, intermediate results do not fit into a processor's caches


@dataclass(frozen=True, kw_only=True)
class Prefixes:
    """Distinct prefixes of one length.

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


def read_prefixes(model: Any, encoder: Encoder, prompts: Sequence[Prompt]) -> list[Prefixes]:
    """Read the prefixes of `prompts`, each distinct one once; those of each length are returned together."""
    by_length: dict[int, dict[tuple[str, tuple[int, ...]], list[int]]] = {}
    for i, prompt in enumerate(prompts):
        ids = prompt.token_ids
        length = len(ids) - ids[::-1].index(encoder.image_token_id)
        by_length.setdefault(length, {}).setdefault((prompt.image_sha256, ids[:length]), []).append(i)
    return [_read(model, encoder, prompts, length, list(rows.values())) for length, rows in by_length.items()]


def _read(
    model: Any, encoder: Encoder, prompts: Sequence[Prompt], length: int, rows: Sequence[Sequence[int]]
) -> Prefixes:
    import torch
    from transformers import DynamicCache

    cut = [replace(prompts[first], token_ids=prompts[first].token_ids[:length]) for first, *_ in rows]
    size = max(1, PASS_TOKENS // length)
    caches, offsets, image_states = [], [], []
    for part in (cut[start : start + size] for start in range(0, len(cut), size)):
        batch = {name: tensor.to(model.device) for name, tensor in encoder.batch(part).items()}
        caches.append(cache := DynamicCache())  # without sliding windows: it keeps all columns of every layer
        images = encoder.shared_images(model, part)
        states = model.model(**batch, **images, past_key_values=cache, use_cache=True).last_hidden_state
        offsets.append(encoder.backbone.position_offsets(model, batch["attention_mask"]))
        is_image = batch["input_ids"] == encoder.image_token_id
        image_states += [of_row[at] for of_row, at in zip(states, is_image, strict=True)]
    layers = [
        (torch.cat([layer.keys for layer in same]), torch.cat([layer.values for layer in same]))
        for same in zip(*(cache.layers for cache in caches), strict=True)
    ]
    row = {i: k for k, sharing in enumerate(rows) for i in sharing}
    return Prefixes(length=length, row=row, layers=layers, offsets=torch.cat(offsets), image_states=image_states)

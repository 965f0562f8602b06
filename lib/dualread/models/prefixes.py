"""Reads rows a few at a time; what the prompts of several rows share is read once, as far as the model allows it.

In most models the states of a prompt up to its last image token depend on nothing after it, so prompts about one image
share them. Where a prompt's tokens see each other in both directions, rows share whole prompts. Where keys and values
are not all that a model remembers, each row is read alone. `facts.Facts.shared` says which of these is right.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dualread.models.backbones import parts
from dualread.models.backbones.checkpoint import Opened
from dualread.models.backbones.encode import EncodedPrompt
from dualread.schema.recorded import READS

PASS_TOKENS = {False: 1536, True: 8192}  # by whether the model is on a GPU
IMAGE_PREFIX, _, NOTHING = READS


def pass_tokens(model: Any) -> int:
    """Return how many tokens the rows of one pass may have together, where `model` is.

    On a CPU, the intermediate results of more tokens do not fit into its caches. On a GPU, the kernels of a pass have
    to be started, which takes 10 to 20 ms for 30 layers, however little it reads.
    """
    return PASS_TOKENS[model.device.type != "cpu"]


@dataclass(frozen=True, kw_only=True)
class Read:
    """Rows that were read in one pass.

    Attributes:
        rows: Their positions in the batch.
        start: The token whose state comes first.
        states: Final-layer states [n, columns, D], padded on the right: column c is of token `start` + c.
        layers: States of each wanted layer [n, columns - 1, D] by its number: column c is of token `start` + 1 + c.
        image_states: Final-layer states of the image tokens of each row [M, D].
        offsets: What to add to the column of a later token to get its position [n]; None where nothing is shared.
        cache: Keys and values of all columns of every layer; None where nothing is shared.
    """

    rows: list[int]
    start: int
    states: Any
    layers: Mapping[int, Any]
    image_states: list[Any]
    offsets: Any
    cache: Any


def read_rows(
    opened: Opened,
    prompts: Sequence[EncodedPrompt],
    ids: Sequence[Sequence[int]],
    *,
    room: int = 0,
    layers: Sequence[int] = (),
) -> Iterator[Read]:
    """Read the rows of a batch: what they share once, then what follows it in each row.

    `ids` are the tokens of each row: its prompt, and whatever follows it; `room` the number of tokens by which the
    caller extends every row of a pass; `layers` those whose states are wanted besides those of the last one.
    """
    if opened.encoder.facts.shared == NOTHING:
        for i, prompt in enumerate(prompts):
            yield _read_whole(opened, [replace(prompt, token_ids=tuple(ids[i]))], [i], layers=layers)
        return
    most = pass_tokens(opened.model)
    for prefixes, prefix_of in _read_prefixes(opened, prompts):
        n_left = {i: len(ids[i]) - prefixes.states.shape[1] + room for i in prefix_of}
        rows: list[int] = []
        for row in sorted(n_left, key=lambda i: (n_left[i], i)):
            if rows and n_left[row] * (len(rows) + 1) > most:
                yield _read_rest(opened, prefixes, prefix_of, rows, ids, layers)
                rows = []
            rows.append(row)
        yield _read_rest(opened, prefixes, prefix_of, rows, ids, layers)


def _read_prefixes(opened: Opened, prompts: Sequence[EncodedPrompt]) -> Iterator[tuple[Read, dict[int, int]]]:
    """Read each distinct prefix once; yield those of one length, read in one pass, and which of them a prompt has."""
    from transformers import DynamicCache

    facts, image_token = opened.encoder.facts, opened.encoder.image_token_id
    by_length: dict[int, dict[tuple[str, tuple[int, ...]], list[int]]] = {}
    for i, prompt in enumerate(prompts):
        ids, length = prompt.token_ids, prompt.n_turn
        if facts.shared == IMAGE_PREFIX and prompt.image:
            length -= ids[length - 1 :: -1].index(image_token)
        by_length.setdefault(length, {}).setdefault((prompt.image_sha256, ids[:length]), []).append(i)
    for length, sharing in by_length.items():
        distinct = list(sharing.values())
        size = max(1, pass_tokens(opened.model) // length) if facts.images_once else 1
        for start in range(0, len(distinct), size):
            part = distinct[start : start + size]
            firsts = [first for first, *_ in part]
            cut = [replace(prompts[i], token_ids=prompts[i].token_ids[:length]) for i in firsts]
            cache = DynamicCache()  # without sliding windows: it keeps all columns of every layer
            yield _read_whole(opened, cut, firsts, cache=cache), {i: k for k, places in enumerate(part) for i in places}


def _read_whole(
    opened: Opened, prompts: Sequence[EncodedPrompt], rows: list[int], *, cache: Any = None, layers: Sequence[int] = ()
) -> Read:
    """Read prompts of one length from their first token on, into `cache` if there is one."""
    model, encoder = opened.model, opened.encoder
    batch = {name: tensor.to(model.device) for name, tensor in encoder.batch(prompts).items()}
    images = encoder.shared_images(model, prompts)
    wanted = parts.keeping(layers)
    cached = {"use_cache": False} if cache is None else {"use_cache": True, "past_key_values": cache}
    with parts.positions(model) as seen:
        output = model.model(**batch, **images, **wanted, **cached)
    turns = [slice(prompt.n_turn) for prompt in prompts]  # a sampled image token is no image
    of_rows = zip(output.last_hidden_state, batch["input_ids"], turns, strict=True)
    return Read(
        rows=rows,
        start=0,
        states=output.last_hidden_state,
        layers={layer: output.hidden_states[layer][:, 1:] for layer in layers},
        image_states=[states[turn][ids[turn] == encoder.image_token_id] for states, ids, turn in of_rows],
        offsets=None if cache is None else parts.position_offsets(seen, batch["input_ids"]),
        cache=cache,
    )


def _read_rest(
    opened: Opened,
    prefixes: Read,
    prefix_of: dict[int, int],
    rows: list[int],
    ids: Sequence[Sequence[int]],
    layers: Sequence[int],
) -> Read:
    import torch
    from transformers import DynamicCache

    model, start = opened.model, prefixes.states.shape[1]
    suffixes = [ids[i][start:] for i in rows]
    at = torch.tensor([prefix_of[i] for i in rows], device=model.device)
    cache = DynamicCache([(of_layer.keys[at], of_layer.values[at]) for of_layer in prefixes.cache.layers])
    states, of_layers, offsets = prefixes.states[at, -1:], {}, prefixes.offsets[at]
    if width := max(map(len, suffixes)):
        tokens = torch.full((len(rows), width), opened.encoder.tokenizer.pad_token_id)
        mask = torch.zeros((len(rows), start + width), dtype=torch.long)
        for k, of_row in enumerate(suffixes):
            tokens[k, : len(of_row)] = torch.tensor(of_row)
            mask[k, : start + len(of_row)] = 1
        wanted = parts.keeping(layers)
        output = model.model(
            input_ids=tokens.to(model.device),
            attention_mask=mask.to(model.device),
            position_ids=torch.arange(start, start + width, device=model.device) + offsets[:, None],
            past_key_values=cache,
            use_cache=True,
            **wanted,
        )
        states = torch.cat([states, output.last_hidden_state], dim=1)
        of_layers = {layer: output.hidden_states[layer] for layer in layers}
    return Read(
        rows=rows,
        start=start - 1,
        states=states,
        layers=of_layers,
        image_states=[prefixes.image_states[prefix_of[i]] for i in rows],
        offsets=offsets,
        cache=cache,
    )


def states_before(
    opened: Opened,
    prompts: Sequence[EncodedPrompt],
    completions: Sequence[Sequence[int]],
    positions: Sequence[Sequence[int]],
) -> Any:
    """Return the final-layer states [positions of all rows, D] that predict the completion tokens at `positions`.

    The state that predicts token t is that of the token before it: for 0, the last token of the prompt.
    """
    import torch

    ids = [[*prompt.token_ids, *completion] for prompt, completion in zip(prompts, completions, strict=True)]
    states: dict[int, Any] = {}
    for read in read_rows(opened, prompts, ids):
        for k, i in enumerate(read.rows):
            before = len(prompts[i].token_ids) - 1 - read.start
            states[i] = read.states[k, [before + t for t in positions[i]]]
    return torch.cat([states[i] for i in range(len(prompts))])

"""The teacher-forced pass: prompts and exact generated ids in, the paper's vectors and log-probabilities out.

`replay_completions` makes batches, `replay_batch` reads one, and `vectors_of` takes the paper's vectors from states.
What prompts about one image share is read once per batch; the rest is read in passes of similar rows. A pass keeps the
states of the final layer and of one middle layer only, and vocabulary logits are computed for completion tokens only.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualread.errors import ReplayDisagreementError
from dualread.models.backbones import parts
from dualread.models.backbones.encode import Prompt, prompt_sha256
from dualread.models.backbones.opened import Opened
from dualread.models.finished import each_batch
from dualread.models.generation.base import Request
from dualread.models.prefixes import read_rows
from dualread.models.replay.pooling import answer_state, evidence_state, global_state
from dualread.models.replay.positions import Positions, locate

VECTORS = ("h_pre", "h_close", "h_ans", "h_global", "h_evid", "h_mid")
TENSORS = (*VECTORS, "answer_log_prob")
_CHUNK_TOKENS = 2048  # completion tokens whose vocabulary logits are in memory at once


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """The result of replaying one completion.

    Attributes:
        vectors: The vectors that `VECTORS` names, each float32 [D], without `OF_IMAGE` where there is none; and
            `answer_log_prob`, the mean of `token_log_probs` over the answer's tokens A, float32 [1].
        positions: The positions that were read.
        n_prompt_tokens: Number of prompt tokens, image tokens included; t_prompt is the last of them.
        n_image_tokens: M, the number of image tokens.
        token_log_probs: Log-softmax of each generated id, in nats, float64.
        token_entropies: Entropy in nats of the distribution from which each generated id was chosen, over the whole
            vocabulary, float64; None if not asked for.
        argmax_gap: For each generated id, by how many nats the log-probability of the best allowed id exceeds its own;
            0 where the generated id is the argmax.
    """

    vectors: dict[str, np.ndarray]
    positions: Positions
    n_prompt_tokens: int
    n_image_tokens: int
    token_log_probs: np.ndarray
    token_entropies: np.ndarray | None
    argmax_gap: np.ndarray


def replay_completions(
    actor: Opened,
    requests: Sequence[Request],
    completions: Sequence[Sequence[int]],
    *,
    kappa: float,
    batch_size: int,
    prompts: Sequence[str] | None = None,
    entropies: bool = False,
    layers: Sequence[float] = (),
) -> list[Replayed]:
    """Replay one completion of each request.

    Args:
        actor: The opened checkpoint.
        requests: n requests without a prefix.
        completions: The generated ids of each request, at least one.
        kappa: Temperature of the evidence pooling.
        batch_size: Completions in one pass.
        prompts: `prompt_sha256` of the prompt that each completion was generated from; None if that was another one.
        entropies: Whether to compute the entropies of tokens as well.
        layers: Depths, from 0 to 1, at which the answer's states are wanted (`of_layer`).

    Raises:
        ReplayDisagreementError: A prompt's ids differ from those that the completion was generated from.
    """
    groups = list(batches([request.image_name for request in requests], [len(ids) for ids in completions], batch_size))
    results: dict[int, Replayed] = {}

    def of_group(group: Sequence[int]) -> list[Replayed]:
        asked = [_prompt(actor, requests[i], None if prompts is None else prompts[i]) for i in group]
        return replay_batch(
            actor, asked, [completions[i] for i in group], kappa=kappa, entropies=entropies, layers=layers
        )

    for group, outcome in each_batch(groups, of_group, Replayed, Positions, label="replaying (batches)"):
        results.update(zip(group, outcome, strict=True))
    return [results[i] for i in range(len(requests))]


def batches(image_names: Sequence[str], lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Yield batches of row numbers; rows about one image are adjacent, so that it is encoded once per batch.

    The batches depend only on the full lists, so that a resumed run replays the same batches.
    """
    order = sorted(range(len(image_names)), key=lambda i: (image_names[i], lengths[i], i))
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def _prompt(actor: Opened, request: Request, generated_from: str | None) -> Prompt:
    prompt = actor.encoder.prompt(request.text, image=request.image, row=request.row)
    if generated_from is not None and prompt_sha256(prompt.token_ids) != generated_from:
        raise ReplayDisagreementError(
            f"{request.row}: the prompt's tokens differ from those of the generation. Check that the tokenizer, the"
            " image size and the prompt are the same in both."
        )
    return prompt


def replay_batch(
    opened: Opened,
    prompts: Sequence[Prompt],
    completions: Sequence[Sequence[int]],
    *,
    kappa: float,
    entropies: bool = False,
    layers: Sequence[float] = (),
) -> list[Replayed]:
    """Replay one batch of completions.

    Args:
        opened: The actor. Its ids that generation may not choose are ignored in `argmax_gap`.
        prompts: n encoded prompts.
        completions: The generated ids of each prompt, at least one.
        kappa: Temperature of the evidence pooling.
        entropies: Whether to compute `token_entropies`.
        layers: Depths, from 0 to 1, at which the answer's states are wanted (`of_layer`).
    """
    import torch

    model = opened.model
    whole = [[*prompt.token_ids, *completion] for prompt, completion in zip(prompts, completions, strict=True)]
    n_layers = model.config.get_text_config().num_hidden_layers
    middle, at_depth = middle_layer(n_layers), {depth: layer_at(depth, n_layers) for depth in layers}
    wanted = sorted({middle, *at_depth.values()})
    replayed: dict[int, Replayed] = {}
    with torch.inference_mode():
        for read in read_rows(opened, prompts, whole, layers=wanted):
            rows = read.rows
            # The state before a token predicts it, so that of the last prompt token is needed as well.
            before = [len(prompts[i].token_ids) - 1 - read.start for i in rows]
            finals = [read.states[k, before[k] : len(whole[i]) - read.start] for k, i in enumerate(rows)]
            ids = torch.tensor([token for i in rows for token in completions[i]], device=model.device)
            predicting = torch.cat([final[:-1] for final in finals])
            log_probs, gaps = _log_probs(model, predicting, ids, opened.forbidden)
            split = np.cumsum([len(completions[i]) for i in rows])[:-1]
            entropy = np.split(_entropies(model, predicting), split) if entropies else [None] * len(rows)
            for k, (i, log_prob, gap, of_tokens) in enumerate(
                zip(rows, np.split(log_probs, split), np.split(gaps, split), entropy, strict=True)
            ):
                at, image = locate(completions[i], opened.encoder.decode, opened.stop), read.image_states[k]
                vectors = vectors_of(finals[k], read.layers[middle][k, before[k] :], image, at, kappa)
                for depth, layer in at_depth.items():
                    vectors[of_layer(depth)] = answer_state(read.layers[layer][k, before[k] :][list(at.answer)])
                replayed[i] = Replayed(
                    vectors={
                        **{name: vector.float().cpu().numpy() for name, vector in vectors.items()},
                        "answer_log_prob": log_prob[list(at.answer)].mean(keepdims=True).astype(np.float32),
                    },
                    positions=at,
                    n_prompt_tokens=len(prompts[i].token_ids),
                    n_image_tokens=len(image),
                    token_log_probs=log_prob,
                    token_entropies=of_tokens,
                    argmax_gap=gap,
                )
    return [replayed[i] for i in range(len(prompts))]


def vectors_of(final: Any, middle: Any, image: Any, at: Positions, kappa: float) -> dict[str, Any]:
    """Return VECTORS of one row from its states [1 + C, D], its middle-layer states [C, D], and the image's [M, D]."""
    h_ans = answer_state(final[[1 + t for t in at.answer]])
    of_image = {"h_global": global_state(image), "h_evid": evidence_state(h_ans, image, kappa)} if len(image) else {}
    return {
        "h_pre": final[0],
        "h_close": final[1 + at.close],
        "h_ans": h_ans,
        **of_image,
        "h_mid": middle[at.last],
    }


def middle_layer(n_layers: int) -> int:
    """Return the 1-based layer at 0.625 of the depth, with halves rounded up: 18 of 28, 21 of 34.

    See docs/choices.md, "SAPLMA". Python's `round` rounds halves to even, which gives another layer at some depths.
    """
    return layer_at(0.625, n_layers)


def layer_at(depth: float, n_layers: int) -> int:
    """Return the 1-based layer at a depth from 0 to 1, with halves rounded up; 0 is what enters the first layer."""
    return math.floor(depth * n_layers + 0.5)


def of_layer(depth: float) -> str:
    """Return the name of the mean of the answer tokens' states in the layer at a depth."""
    return f"h_ans_at_{depth:g}"


def _log_probs(model: Any, states: Any, ids: Any, forbidden: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    import torch

    # In float32: logits near 20 are .125 apart in bfloat16. Casting copies nothing where the model is float32.
    head = parts.head(model, torch.float32)
    log_probs, gaps = [], []
    for part, part_ids in zip(states.split(_CHUNK_TOKENS), ids.split(_CHUNK_TOKENS), strict=True):
        logits = head(part)
        # In float64: a float32 softmax rounds probabilities above 1 - 6e-8 to 1, and the log-odds of 1 are infinite.
        chosen = torch.log_softmax(logits.double(), dim=-1).gather(1, part_ids[:, None])[:, 0]
        own = logits.gather(1, part_ids[:, None])[:, 0]
        logits[:, list(forbidden)] = -float("inf")
        log_probs.append(chosen)
        gaps.append((logits.max(dim=-1).values - own).clamp(min=0))
    return torch.cat(log_probs).cpu().numpy(), torch.cat(gaps).cpu().numpy()


def _entropies(model: Any, states: Any) -> np.ndarray:
    import torch

    head = parts.head(model, torch.float32)
    found = []
    for part in states.split(_CHUNK_TOKENS // 4):  # three tensors in float64 instead of one
        log_probs = torch.log_softmax(head(part).double(), dim=-1)
        found.append(-(log_probs.exp() * log_probs).nansum(dim=-1))  # a logit of -inf has probability 0: 0 log 0 is 0
    return torch.cat(found).cpu().numpy()


def stacked(replayed: Sequence[Replayed], name: str) -> np.ndarray:
    """Return what was read of each completion under `name`, one of `TENSORS`, float32 [n, D]."""
    rows = [r.vectors[name] for r in replayed]
    return np.stack(rows) if rows else np.zeros((0, 1), dtype=np.float32)


def padded_entropies(replayed: Sequence[Replayed]) -> np.ndarray:
    """Return the entropies of each completion's tokens, float32 [n, tokens of the longest], NaN behind its last token.

    All of them were replayed with `entropies`.
    """
    rows = [r.token_entropies for r in replayed if r.token_entropies is not None]
    assert len(rows) == len(replayed), "the entropies of tokens were not asked for"
    padded = np.full((len(rows), max((len(row) for row in rows), default=1)), np.nan, dtype=np.float32)
    for into, row in zip(padded, rows, strict=True):
        into[: len(row)] = row
    return padded

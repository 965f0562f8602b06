"""What is read of the states of a completion, whatever pass they come from, and the tensors in which it is stored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from dualread.errors import ArtifactError
from dualread.models.replay.positions import Positions
from dualread.schema.replay import OF_ONE_IMAGE

if TYPE_CHECKING:
    from torch import Tensor

    from dualread.models.backbones.encode import EncodedPrompt

CHUNK_TOKENS = 2048  # tokens whose vocabulary logits are in memory at once


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
        claims: The same of each claim of the completion, if they are read: other vectors and positions.
    """

    vectors: dict[str, np.ndarray]
    positions: Positions
    n_prompt_tokens: int
    n_image_tokens: int
    token_log_probs: np.ndarray
    token_entropies: np.ndarray | None
    argmax_gap: np.ndarray
    claims: "tuple[Replayed, ...]" = ()


def with_images(replayed: Replayed, states: "Tensor", prompt: "EncodedPrompt", image_token_id: int) -> Replayed:
    """Return what was read of a completion, and of each of its claims, with the mean of each image's `states` [M, D].

    These are h_image_1, h_image_2, ..., equation 2 over each image that is shown at this place, whatever its role. The
    tokens of an image have to stand together, apart from those of others.
    """
    sizes = [len([*run]) for token, run in groupby(prompt.token_ids) if token == image_token_id]
    if len(sizes) != (n := len(prompt.image_sha256.split())):
        raise ArtifactError(
            f"{prompt.row}: the prompt shows {n} images, and their tokens stand in {len(sizes)} places, so that nobody"
            f" knows which are of which. Expected one place for each. Leave out what reads {OF_ONE_IMAGE}<number>."
        )
    means = [part.float().mean(dim=0).cpu().numpy() for part in states.split(sizes)] if sizes else []
    named = {f"{OF_ONE_IMAGE}{k}": mean for k, mean in enumerate(means, start=1)}
    claims = tuple(replace(claim, vectors=claim.vectors | named) for claim in replayed.claims)
    return replace(replayed, vectors=replayed.vectors | named, claims=claims)


def log_probs_of(
    head: Callable[[Any], Any], states: Any, ids: Any, forbidden: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-probability of each of n ids [n] in nats, and by how much the best allowed id's exceeds it.

    `states` [n, D] are those from which the ids were chosen, and `head` turns states into logits in float32.
    """
    import torch

    log_probs, gaps = [], []
    for part, part_ids in zip(states.split(CHUNK_TOKENS), ids.split(CHUNK_TOKENS), strict=True):
        logits = head(part)
        # In float64: a float32 softmax rounds probabilities above 1 - 6e-8 to 1, and the log-odds of 1 are infinite.
        chosen = torch.log_softmax(logits.double(), dim=-1).gather(1, part_ids[:, None])[:, 0]
        chosen_logits = logits.gather(1, part_ids[:, None])[:, 0]
        logits[:, list(forbidden)] = -float("inf")
        log_probs.append(chosen)
        gaps.append((logits.max(dim=-1).values - chosen_logits).clamp(min=0))
    return torch.cat(log_probs).cpu().numpy(), torch.cat(gaps).cpu().numpy()


def entropies_of(head: Callable[[Any], Any], states: Any) -> np.ndarray:
    """Return the entropy in nats of the distribution that `head` makes of each of n states [n, D], float64 [n]."""
    import torch

    entropy = []
    for part in states.split(CHUNK_TOKENS // 4):  # three tensors in float64 instead of one
        log_probs = torch.log_softmax(head(part).double(), dim=-1)
        entropy.append(-(log_probs.exp() * log_probs).nansum(dim=-1))  # a logit of -inf has probability 0: 0 log 0 is 0
    return torch.cat(entropy).cpu().numpy()


def stacked(replayed: Sequence[Replayed], name: str) -> np.ndarray:
    """Return what was read of each completion under `name`, one of `TENSORS`, float32 [n, D]."""
    rows = [r.vectors[name] for r in replayed]
    return np.stack(rows) if rows else np.zeros((0, 1), dtype=np.float32)


def stacked_optional(replayed: Sequence[Replayed], name: str) -> np.ndarray:
    """Return what is stored only where a reader reads it (`schema.replay`), float32 [n, ...].

    Entropies of tokens are NaN behind a completion's last one, and the state of an image where a prompt has fewer. All
    of them were asked for.
    """
    if name != "token_entropies":
        return stacked([replace(r, vectors={name: r.vectors["h_pre"] * np.nan} | r.vectors) for r in replayed], name)
    rows = [r.token_entropies for r in replayed if r.token_entropies is not None]
    assert len(rows) == len(replayed), "the entropies of tokens were not asked for"
    return padded(rows)


def padded(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Return rows of numbers, one per token, float32 [n, tokens of the longest], NaN behind the last token of each."""
    matrix = np.full((len(rows), max((len(row) for row in rows), default=1)), np.nan, dtype=np.float32)
    for into, row in zip(matrix, rows, strict=True):
        into[: len(row)] = row
    return matrix

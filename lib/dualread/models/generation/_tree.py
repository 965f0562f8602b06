"""The log-likelihoods of many continuations of one prompt, from one pass over the tree of their prefixes.

Each prefix is one token of the pass. It sees the prompt and its own beginning, but none of the other prefixes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from dualread.models.backbones import parts
from dualread.models.backbones.checkpoint import Opened
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.generation._states import Ready, read_prompts
from dualread.models.prefixes import NOTHING, read_rows
from dualread.models.replay.replayed import CHUNK_TOKENS


@dataclass(frozen=True, kw_only=True)
class Tree:
    """The prefixes of some continuations; node 0 is the empty prefix, and every other node follows its parent.

    Attributes:
        tokens: The last id of each node but the empty one [nodes - 1].
        ancestors: Whether a node (column) begins another one or is the same (row) [nodes - 1, nodes - 1].
        steps: (node, next id) of every id of every continuation, one continuation after the other [ids, 2].
        starts: Where in `steps` each continuation starts [continuations].
    """

    tokens: np.ndarray
    ancestors: np.ndarray
    steps: np.ndarray
    starts: np.ndarray


@lru_cache(maxsize=64)
def tree_of(continuations: tuple[tuple[int, ...], ...]) -> Tree:
    """Return the tree of `continuations`, each of at least one id."""
    nodes: dict[tuple[int, ...], int] = {(): 0}
    for ids in continuations:
        for end in range(1, len(ids)):
            nodes.setdefault(ids[:end], len(nodes))
    prefixes = list(nodes)[1:]
    ancestors = np.zeros((len(prefixes), len(prefixes)), dtype=bool)
    for prefix in prefixes:
        begins = [nodes[prefix[:end]] - 1 for end in range(1, len(prefix) + 1)]
        ancestors[nodes[prefix] - 1, begins] = True
    steps = [(nodes[ids[:end]], ids[end]) for ids in continuations for end in range(len(ids))]
    return Tree(
        tokens=np.array([prefix[-1] for prefix in prefixes], dtype=np.int64),
        ancestors=ancestors,
        steps=np.array(steps, dtype=np.int64).reshape(-1, 2),
        starts=np.cumsum([0, *(len(ids) for ids in continuations[:-1])]),
    )


@torch.inference_mode()
def score(opened: Opened, prompts: Sequence[EncodedPrompt], continuations: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """Return the log-likelihoods of the continuations after each prompt, float64 [prompts, continuations]."""
    if not opened.encoder.facts.tree or opened.encoder.facts.shared == NOTHING:
        return _score_rows(opened, prompts, continuations)
    tree = tree_of(continuations)
    scores = np.empty((len(prompts), len(tree.starts)))
    with parts.in_attention(opened.model, "sdpa"):
        for read in read_prompts(opened, prompts, room=len(tree.tokens)):
            scores[read.at] = _score(opened.model, read, tree)
    return scores


def _score_rows(
    opened: Opened, prompts: Sequence[EncodedPrompt], continuations: tuple[tuple[int, ...], ...]
) -> np.ndarray:
    """Score each continuation in a row of its own, where a model does not take masks of any form."""
    rows = [(prompt, ids) for prompt in prompts for ids in continuations]
    scores, head = np.empty(len(rows)), parts.head(opened.model)
    sequences = [[*prompt.token_ids, *ids] for prompt, ids in rows]
    for read in read_rows(opened, [prompt for prompt, _ in rows], sequences):
        for k, i in enumerate(read.rows):
            ids, before = rows[i][1], len(rows[i][0].token_ids) - 1 - read.start
            log_probs = torch.log_softmax(head(read.states[k, before : before + len(ids)]).double(), dim=-1)
            scores[i] = log_probs.gather(1, torch.tensor(ids, device=log_probs.device)[:, None]).sum().item()
    return scores.reshape(len(prompts), len(continuations))


def _score(model: Any, read: Ready, tree: Tree) -> np.ndarray:
    states = read.last[:, None]
    if len(tree.tokens):
        states = torch.cat([states, _states_of_nodes(model, read, tree)], dim=1)
    node, token = torch.from_numpy(tree.steps.T).to(states.device)
    log_probs = []
    for rows in states.split(max(1, CHUNK_TOKENS // states.shape[1])):
        logits = parts.head(model)(rows).double()
        log_probs.append(logits[:, node, token] - torch.logsumexp(logits, dim=-1)[:, node])
    return np.add.reduceat(torch.cat(log_probs).cpu().numpy(), tree.starts, axis=1)


def _states_of_nodes(model: Any, read: Ready, tree: Tree) -> torch.Tensor:
    """Return the final-layer states of the nodes but the empty one [prompts, nodes - 1, D]."""
    device, (n_prompts, width) = read.mask.device, read.mask.shape
    ancestors = torch.from_numpy(tree.ancestors).to(device)
    depths = ancestors.sum(dim=1)  # a node has as many ids as prefixes
    # The last token of a prompt is in column `width - 1` and has depth 0.
    depth_of_column = torch.cat([torch.arange(1 - width, 1, device=device), depths])
    allowed = torch.cat(
        [read.mask.bool()[:, None].expand(-1, len(depths), -1), ancestors.expand(n_prompts, -1, -1)], dim=2
    )
    output = model.model(
        input_ids=torch.from_numpy(tree.tokens).to(device).expand(n_prompts, -1),
        attention_mask=parts.attention_masks(model, allowed[:, None], depths[:, None] - depth_of_column[None, :]),
        position_ids=width - 1 + depths + read.offsets[:, None],
        past_key_values=read.cache,
        use_cache=True,
    )
    return output.last_hidden_state

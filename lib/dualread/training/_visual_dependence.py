"""How much a <vision> block depends on the image: VL-Calibration's clean and blackened forward passes.

Both passes are teacher-forced over the exact generated ids. At every token of the block, the full distributions are
compared: KL(clean || blackened) = sum over the vocabulary of p (log p - log q), and H = -sum p log p. The released code
takes only the generated token's summand, a noisy estimate of the same quantity. Logits are computed for the tokens of
vision blocks only, in chunks, so that the passes fit into the memory of any device that can train the model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dualread.grading.parse import block_span
from dualread.grading.spans import character_spans, tokens_within
from dualread.models.backbones import parts
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.backbones.opened import Opened
from dualread.models.prefixes import read_rows

if TYPE_CHECKING:
    from PIL.Image import Image

# From the released code of Xiao 2026 (arXiv 2604.09529): probability of a black patch, and upper bound of KL and H.
BLACK_SHARE = 0.8
LARGEST_TERM = 10.0
_CHUNK_TOKENS = 512  # tokens whose vocabulary logits are in memory at once


@dataclass(frozen=True, kw_only=True)
class Block:
    """The vision block of one completion.

    Attributes:
        tokens: Positions of its tokens in the completion [n], ascending, at least one.
        kl: KL of each token [n], in nats, in [0, 10].
        entropy: H of each token [n], in nats, in [0, 10].
    """

    tokens: tuple[int, ...]
    kl: np.ndarray
    entropy: np.ndarray


def blacken(image: "Image", patch_pixels: int, rng: np.random.Generator) -> "Image":
    """Return a copy of the RGB image in which each square patch is black with probability 0.8.

    As in the released code, the grid of patches starts at the upper left, in pixels of the original image. Patches at
    the right and lower edges are smaller if the size is not a multiple of `patch_pixels`.
    """
    from PIL import Image as images

    pixels = np.asarray(image)
    height, width = pixels.shape[:2]
    black = rng.random((-(-height // patch_pixels), -(-width // patch_pixels))) < BLACK_SHARE
    black = black.repeat(patch_pixels, axis=0).repeat(patch_pixels, axis=1)[:height, :width]
    return images.fromarray(np.where(black[:, :, None], np.uint8(0), pixels))


def vision_tokens(token_ids: Sequence[int], decode: Callable[[Sequence[int]], str]) -> tuple[int, ...]:
    """Return the positions of tokens with any character inside the vision block, without tags and outer white space.

    The result is empty unless there is exactly one closed block with text in it.
    """
    text, spans = character_spans(token_ids, decode)
    block = block_span(text, "vision")
    if block is None:
        return ()
    inside = text[block[0] : block[1]]
    return tokens_within(spans, block[0] + len(inside) - len(inside.lstrip()), block[0] + len(inside.rstrip()))


def measure(
    opened: Opened,
    views: Sequence[tuple[EncodedPrompt, EncodedPrompt]],
    completions: Sequence[Sequence[int]],
    *,
    temperature: float,
    rows_per_pass: int,
) -> list[Block | None]:
    """Measure the vision block of each completion; None for completions without one.

    Args:
        opened: The policy that generated the completions.
        views: The prompt of each completion, with the clean and with the blackened image.
        completions: The generated ids of each completion.
        temperature: Temperature by which logits are divided, as in the loss.
        rows_per_pass: Completions in one forward pass.
    """
    import torch

    tokens = [vision_tokens(ids, opened.encoder.decode) for ids in completions]
    rows = [i for i, positions in enumerate(tokens) if positions]
    blocks: list[Block | None] = [None] * len(completions)
    for start in range(0, len(rows), rows_per_pass):
        part = rows[start : start + rows_per_pass]
        # Tokens after a block do not influence it.
        prefixes = [completions[i][: tokens[i][-1]] for i in part]
        positions = [tokens[i] for i in part]
        with torch.no_grad():
            clean, blackened = (_states(opened, [views[i][side] for i in part], prefixes, positions) for side in (0, 1))
            kl, entropy = _compare(opened.model, clean, blackened, temperature)
        split = np.cumsum([len(p) for p in positions])[:-1]
        for i, block_kl, block_entropy in zip(part, np.split(kl, split), np.split(entropy, split), strict=True):
            blocks[i] = Block(tokens=tokens[i], kl=block_kl, entropy=block_entropy)
    return blocks


def _states(
    opened: Opened,
    prompts: Sequence[EncodedPrompt],
    prefixes: Sequence[Sequence[int]],
    positions: Sequence[Sequence[int]],
) -> Any:
    """Return the final-layer states [tokens of all rows, D] that predict the completion tokens at `positions`."""
    import torch

    ids = [[*prompt.token_ids, *prefix] for prompt, prefix in zip(prompts, prefixes, strict=True)]
    states: dict[int, Any] = {}
    for read in read_rows(opened, prompts, ids):
        for k, i in enumerate(read.rows):
            # The state before a token predicts it.
            before = len(prompts[i].token_ids) - 1 - read.start
            states[i] = read.states[k, [before + t for t in positions[i]]]
    return torch.cat([states[i] for i in range(len(prompts))])


def _compare(model: Any, clean: Any, blackened: Any, temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """Return KL(clean || blackened) and the entropy of clean, both float64 [n], from states [n, D]."""
    import torch

    kl, entropy, head = [], [], parts.head(model)
    for p_states, q_states in zip(clean.split(_CHUNK_TOKENS), blackened.split(_CHUNK_TOKENS), strict=True):
        log_p, log_q = (
            torch.log_softmax(head(states).float() / temperature, dim=-1) for states in (p_states, q_states)
        )
        p = log_p.exp()
        kl.append((p * (log_p - log_q)).sum(dim=-1))
        entropy.append(-(p * log_p).sum(dim=-1))
    terms = torch.stack([torch.cat(kl), torch.cat(entropy)]).clamp(0, LARGEST_TERM).cpu().double().numpy()
    return terms[0], terms[1]

"""Replay completions of any length in batches, and stack what was read."""

from collections.abc import Sequence

import numpy as np

from dualread.errors import ReplayDisagreementError
from dualread.models.backbones.encode import Prompt, prompt_sha256
from dualread.models.backbones.opened import Opened
from dualread.models.generation.base import Request
from dualread.models.replay.forward import Replayed, batches, replay_batch
from dualread.progress import track


def replay_completions(
    actor: Opened,
    requests: Sequence[Request],
    completions: Sequence[Sequence[int]],
    *,
    kappa: float,
    batch_size: int,
    prompts: Sequence[str] | None = None,
    entropies: bool = False,
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

    Raises:
        ReplayDisagreementError: A prompt's ids differ from those that the completion was generated from.
    """
    groups = list(batches([request.image_name for request in requests], [len(ids) for ids in completions], batch_size))
    results: dict[int, Replayed] = {}
    for group in track(groups, total=len(groups), label="replaying (batches)"):
        outcome = replay_batch(
            actor,
            [_prompt(actor, requests[i], None if prompts is None else prompts[i]) for i in group],
            [completions[i] for i in group],
            kappa=kappa,
            entropies=entropies,
        )
        results.update(zip(group, outcome, strict=True))
    return [results[i] for i in range(len(requests))]


def stacked(replayed: Sequence[Replayed], name: str) -> np.ndarray:
    """Return what was read of each completion under `name`, one of `forward.TENSORS`, float32 [n, D]."""
    rows = [r.answer_log_prob if name == "answer_log_prob" else r.vectors[name] for r in replayed]
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


def _prompt(actor: Opened, request: Request, generated_from: str | None) -> Prompt:
    prompt = actor.encoder.prompt(request.text, image=request.image, row=request.row)
    if generated_from is not None and prompt_sha256(prompt.token_ids) != generated_from:
        raise ReplayDisagreementError(
            f"{request.row}: the prompt's tokens differ from those of the generation. Check that the tokenizer, the"
            " image size and the prompt are the same in both."
        )
    return prompt

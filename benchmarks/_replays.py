"""Replays completions with an opened checkpoint, and says by how much that differs from their generation."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualread.models.actor import Completion, ReadSpec, Request
from dualread.models.backbones.checkpoint import Opened
from dualread.models.replay import agreement
from dualread.models.replay.forward import replay_batch

BATCH_SIZE = 16


def without_types(opened: Opened) -> Opened:
    """Let a checkpoint read its image tokens as if they were text."""
    batch = opened.encoder.batch
    opened.encoder.batch = lambda *rows, **named: {  # pyright: ignore
        name: t * 0 if name.endswith("token_type_ids") else t for name, t in batch(*rows, **named).items()
    }
    return opened


def compare(
    opened: Opened,
    about: Sequence[Request],
    made: Sequence[Completion],
    *,
    noise: float | None = None,
    tolerance: float = 0.0,
) -> dict[str, Any]:
    """Return differences between replay and generation, and what rounding explains.

    Args:
        opened: The model that replays.
        about: What was asked.
        made: What the generating model completed.
        noise: The rounding in nats, if it was measured before; it is measured as the stage does otherwise.
        tolerance: `argmax_tolerance` of the config, in nats.
    """
    encoded = [opened.encoder.prompt(request.text, images=request.images, row=request.row) for request in about]
    ids = [list(one.token_ids) for one in made]
    replayed = []
    for start in range(0, len(ids), BATCH_SIZE):
        part = slice(start, start + BATCH_SIZE)
        replayed += replay_batch(opened, encoded[part], ids[part], ReadSpec(kappa=0.1))
    pairs = zip(replayed, made, strict=True)
    difference = np.concatenate([np.abs(r.token_log_probs - np.array(one.token_log_probs)) for r, one in pairs])
    if noise is None:
        noise = agreement.ReferenceLogProbs.of(opened, about, ids).rounding
    gaps = np.concatenate([r.argmax_gap for r in replayed])
    return {
        "mean difference": float(difference.mean()),
        "rounding": noise,
        "ratio": float(difference.mean()) / noise if noise else None,
        "largest": float(difference.max()),
        "worse tokens": float((gaps > max(tolerance, agreement.GAP_RATIO * noise)).mean()),
    }

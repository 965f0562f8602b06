"""The completions of a training step, sampled with the trained model itself.

TRL would generate all completions of a process in one call: 256 rows of paper.yaml, whose keys and values alone take
more memory than a GPU has. Here a call generates at most `rollouts_per_pass` of them, and reads each prompt once for
all its completions. A completion has random numbers of its own, which depend only on the training's seed, the step, and
the completion's position in the step: neither the size of a piece nor the number of processes changes them.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from dualread.models.actor import EncodedRequest
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.backbones.opened import Opened
from dualread.models.generation._transformers_stream import complete
from dualread.training.job import Job


@contextlib.contextmanager
def for_sampling(model: Any) -> Iterator[None]:
    """Let `model`, which is being trained, generate with a cache of keys and values.

    Layers that compute their activations again in the backward pass keep no cache while they train.
    """
    import torch

    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train()


def roll_out(opened: Opened, prompts: Sequence[EncodedPrompt], job: Job, *, step: int, first: int) -> list[list[int]]:
    """Return the ids of one completion per row.

    Args:
        opened: The trained model, and how to encode its prompts.
        prompts: The prompt of each row of this process. Adjacent rows with one prompt share it.
        job: What is trained.
        step: Number of steps before this one.
        first: Position of the first row among the rows of all processes.
    """
    decoding, most = job.decoding, job.settings.sampled_at_once
    made: dict[int, list[int]] = {}
    for start in range(0, len(prompts), most):
        piece = range(start, min(start + most, len(prompts)))
        rows_of: dict[str, list[int]] = {}
        for i in piece:
            rows_of.setdefault(prompts[i].row, []).append(i)
        asked = [
            EncodedRequest(
                name=name,
                prompt=prompts[rows[0]],
                decoding=decoding.model_copy(update={"n_samples": len(rows)}),
                drawn_by=[("rollout", job.seed, step, first + i) for i in rows],
            )
            for name, rows in rows_of.items()
        ]
        for rows, completions in zip(rows_of.values(), complete(opened, asked), strict=True):
            made |= {i: list(completion.token_ids) for i, completion in zip(rows, completions, strict=True)}
    return [made[i] for i in range(len(prompts))]

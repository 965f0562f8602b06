"""Engines that sample the completions of a training in place of the trained model's own loop: one file per engine.

Entry points of a plugin:
    open_rollouts(checkpoint, model, settings, gpus) -> Rollouts: Opens the checkpoint that a training starts from.
        `model` are the settings with which it is opened, `settings` what `Settings` declares, `gpus` the GPUs that
        do nothing else, as CUDA_VISIBLE_DEVICES names them; without them, the engine shares the trainer's.
    Settings: What `rollout_settings` may set. `dualread plan` reads its `max_num_seqs`, `gpu_memory_utilization` and
        `sleep`.
    ENVIRONMENT: The environment in which the training runs, if that is not the workflow's own: the name of a lock file.
    prepare(): What a process of that environment does before it imports anything else of it.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from dualread.models.actor import Rollout, SeededDecoding
from dualread.models.backbones.encode import EncodedPrompt


class Rollouts(Protocol):
    """An engine that samples with the weights of the policy as they are before a step."""

    def roll_out(
        self,
        weights: Iterable[tuple[str, Any]],
        prompts: Sequence[EncodedPrompt],
        decoding: SeededDecoding,
        seeds: Sequence[int],
    ) -> list[Rollout]:
        """Return one completion per prompt, each of the random stream of its seed.

        `weights` are (name, tensor) of all weights of the policy, tied ones under each of their names. Adjacent
        completions of one prompt share it.
        """
        ...

    def close(self) -> None:
        """Give everything back. The training has ended, and its processes need not be connected any more."""
        ...

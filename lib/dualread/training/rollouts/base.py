"""The interface of engines that sample for a training."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from dualread.models.actor import SeededDecoding
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.generation.drawn import Rollout


class Rollouts(Protocol):
    """An engine that samples with the weights of the policy as they are before a step."""

    def roll_out(
        self,
        weights: Iterable[tuple[str, Any]],
        prompts: Sequence[EncodedPrompt],
        decoding: SeededDecoding,
        seeds: Sequence[int],
    ) -> list[Rollout]:
        """Return one completion per prompt.

        Args:
            weights: (name, tensor) of all weights of the policy, tied ones under each of their names.
            prompts: The prompt of each completion. Adjacent completions of one prompt share it.
            decoding: How tokens are chosen.
            seeds: The seed of each completion's own random stream.
        """
        ...

    def close(self) -> None:
        """Give everything back. The training has ended, and its processes need not be connected any more."""
        ...

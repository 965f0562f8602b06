"""The interface of engines that sample for a training."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dualread.models.actor import SeededDecoding
from dualread.models.backbones.encode import EncodedPrompt


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """One completion that an engine has drawn.

    Attributes:
        token_ids: Its ids, including the one that ends the turn.
        log_probs: The log-probability of each id in nats, by the policy: before ids are forbidden, and before top-p.
        drawn_with: The parameters with which the engine drew it, read back from the engine, as in `drawn_with`.
    """

    token_ids: Sequence[int]
    log_probs: Sequence[float]
    drawn_with: Mapping[str, Any]


def drawn_with(
    *,
    temperature: float,
    top_p: float,
    max_completion_tokens: int,
    seed: int,
    stop: Iterable[int],
    forbidden: Iterable[int],
) -> dict[str, Any]:
    """Return the parameters with which a completion is drawn.

    An engine reports these, and under names of its own any other one that changes what is drawn.
    """
    return {
        "temperature": temperature,
        "top_p": top_p,
        "max_completion_tokens": max_completion_tokens,
        "seed": seed,
        "ids that end a turn": sorted(stop),
        "forbidden ids": sorted(forbidden),
    }


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

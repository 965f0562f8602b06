"""A completion that an engine has drawn for a training, and the parameters with which it was drawn."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


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

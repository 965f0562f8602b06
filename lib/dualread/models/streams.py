"""What an actor tells while it answers requests as they come (`Stream`), and a completion as it grows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from dualread.models.actor import ClaimSpan, Completion, EncodedRequest


@dataclass(frozen=True, kw_only=True)
class PromptRead:
    """The prompt of the request `name` was read; `state` is h_pre [D], or None where nobody reads it."""

    name: str
    state: np.ndarray | None


@dataclass(frozen=True, kw_only=True)
class TokenEvent:
    """One more token of the completion `index` of the request `name`.

    `log_prob` is in nats, before ids are forbidden and before temperature and top-p; None where nobody asked for it,
    because it costs time. `top` has the most probable tokens at its place with their log-probabilities, as many as were
    asked for.
    """

    name: str
    index: int
    token: int
    log_prob: float | None
    top: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A whole completion; its `states` are the vectors that readers read, where the actor has them already."""

    name: str
    index: int
    completion: Completion


@dataclass(frozen=True, kw_only=True)
class PartlyRead:
    """A completion as far as it has come, with the `states` of those of its claims that `Stream.read_early` named."""

    name: str
    index: int
    completion: Completion


@dataclass(frozen=True, kw_only=True)
class BrokenRequest:
    """The request `name` cannot be answered, and no other one is affected."""

    name: str
    error: str


E = TypeVar("E", Finished, PartlyRead)
Event = PromptRead | TokenEvent | PartlyRead | Finished | BrokenRequest


@dataclass(kw_only=True)
class GrowingCompletion:
    """One completion of a request as it grows, without a `finish_reason` while it goes on.

    `log_probs` is empty where nobody asked for them.
    """

    request: EncodedRequest
    index: int
    finish_reason: str = ""
    tokens: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)

    def grow(self, token: int, log_prob: float | None, top: Sequence[tuple[int, float]] = ()) -> TokenEvent:
        """Add a token, and return the event."""
        self.tokens.append(token)
        if log_prob is not None:
            self.log_probs.append(log_prob)
        return TokenEvent(name=self.request.name, index=self.index, token=token, log_prob=log_prob, top=top)

    def told(self, kind: type[E], decode: Callable[[Sequence[int]], str], states: Any = None) -> E:
        """Return the event of the end, or that of a completion that goes on."""
        completion = Completion(
            prompt_token_ids=self.request.prompt.token_ids,
            token_ids=list(self.tokens),
            token_log_probs=list(self.log_probs),
            text=decode(self.tokens),
            finish_reason=self.finish_reason,
            states=states,
        )
        return kind(name=self.request.name, index=self.index, completion=completion)


class Stream(Protocol):
    """Requests that are answered as they come. The events of a request come in their order."""

    @property
    def n_open(self) -> int:
        """How many completions are being made, wait, or still hold memory."""
        ...

    def add(self, request: EncodedRequest) -> None:
        """Begin to answer a request at one of the next steps."""
        ...

    def abort(self, name: str) -> None:
        """Forget a request that nobody waits for any longer; an unknown one is ignored."""
        ...

    def read_early(self, name: str, index: int, claims: Sequence[ClaimSpan]) -> None:
        """Let one of the next steps tell the states of claims of a completion that goes on (`PartlyRead`).

        The text of the claims, and some behind it, was told in `TokenEvent`s. Nothing comes if the completion ends
        meanwhile, if it is not watched, or if it is unknown.
        """
        ...

    def step(self) -> Sequence[Event]:
        """Go on by about one token of some requests."""
        ...

"""What the service needs of an actor: it answers many requests at once, and tells at each step what has happened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from dualread.declared.recorded import RequiredView
from dualread.models.backbones.encode import Encoder
from dualread.models.generation.base import Completion
from dualread.own.scoring.answering import Answered
from dualread.own.serving.asked import ActorRequest


@dataclass(frozen=True, kw_only=True)
class Begun:
    """The prompt of the request `name` was read; `state` is h_pre [D], or None if readers cannot judge its answer."""

    name: str
    state: np.ndarray | None


@dataclass(frozen=True, kw_only=True)
class Said:
    """One more token of a completion.

    Attributes:
        name: The request.
        index: Which of its completions.
        token: The id.
        log_prob: Its log-probability in nats, before ids are forbidden and before temperature and top-p; None where
            nobody asked for it, because it costs time.
    """

    name: str
    index: int
    token: int
    log_prob: float | None


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A whole completion; `states` are the vectors that readers read, where the actor has them already."""

    name: str
    index: int
    completion: Completion
    states: Mapping[str, np.ndarray] | None = None


@dataclass(frozen=True, kw_only=True)
class BrokenRequest:
    """The request `name` cannot be answered, and no other one is affected."""

    name: str
    error: str


Event = Begun | Said | Ended | BrokenRequest


@dataclass(kw_only=True)
class GrowingCompletion:
    """One completion as it grows: its request, which of the request's completions it is, and what has been said.

    `log_probs` is empty where nobody asked for them.
    """

    name: str
    asked: ActorRequest
    index: int
    tokens: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)

    def say(self, token: int, log_prob: float | None) -> Said:
        """Add a token, and return the event."""
        self.tokens.append(token)
        if log_prob is not None:
            self.log_probs.append(log_prob)
        return Said(name=self.name, index=self.index, token=token, log_prob=log_prob)

    def ended(self, text: str, finish_reason: str, states: Mapping[str, np.ndarray] | None = None) -> Ended:
        """Return the event of the end: the whole completion, with the states that the actor has already."""
        completion = Completion(
            prompt_token_ids=self.asked.prompt.token_ids,
            token_ids=self.tokens,
            token_log_probs=self.log_probs,
            text=text,
            finish_reason=finish_reason,
        )
        return Ended(name=self.name, index=self.index, completion=completion, states=states)


class ServingActor(Protocol):
    """An opened checkpoint that answers requests as they arrive. One thread calls all but `encoder`, `broken`, `n_open`
    and `wake`.

    Attributes:
        encoder: Encodes prompts.
        config: The configuration of the model's text part.
        stop: Ids that end a turn.
        broken: Why nothing is answered any longer, where the actor knows that before it is asked for a step.
    """

    encoder: Encoder
    config: Any
    stop: frozenset[int]
    broken: str | None

    @property
    def n_open(self) -> int:
        """How many completions are being made, wait, or still hold memory; another thread may ask."""
        ...

    def add(self, name: str, asked: ActorRequest) -> None:
        """Begin to answer a request at one of the next steps."""
        ...

    def abort(self, name: str) -> None:
        """Forget a request that nobody waits for any longer; an unknown one is ignored."""
        ...

    def step(self) -> Sequence[Event]:
        """Go on by about one token of some requests; the events of a request come in their order."""
        ...

    def wake(self) -> None:
        """Let `step` return, if it waits for the engine: there is a request to add or to abort."""
        ...

    def close(self) -> None:
        """End what the actor has started."""
        ...

    def read(self, asked: Sequence[ActorRequest], ended: Sequence[Ended], views: Sequence[RequiredView]) -> Answered:
        """Return completions that readers can judge as they see them, with states and views."""
        ...

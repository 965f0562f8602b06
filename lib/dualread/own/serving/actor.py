"""What the service needs of an actor: it answers many requests at once, and tells at each step what has happened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dualread.declared.recorded import RequiredView
from dualread.models.backbones.encode import Encoder
from dualread.models.generation.base import Completion
from dualread.own.scoring.answering import Answered
from dualread.own.serving.asked import Asked


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
        log_prob: Its log-probability in nats, before ids are forbidden and before temperature and top-p.
    """

    name: str
    index: int
    token: int
    log_prob: float


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A whole completion; `states` are the vectors that readers read, where the actor has them already."""

    name: str
    index: int
    completion: Completion
    states: Mapping[str, np.ndarray] | None = None


@dataclass(frozen=True, kw_only=True)
class Broken:
    """The request `name` cannot be answered, and no other one is affected."""

    name: str
    error: str


Event = Begun | Said | Ended | Broken


class ServingActor(Protocol):
    """An opened checkpoint that answers requests as they arrive. All is called by one thread, but for `encoder`."""

    encoder: Encoder
    config: Any
    stop: frozenset[int]

    def add(self, name: str, asked: Asked) -> None:
        """Begin to answer a request at one of the next steps."""
        ...

    def abort(self, name: str) -> None:
        """Forget a request that nobody waits for any longer; an unknown one is ignored."""
        ...

    def step(self) -> Sequence[Event]:
        """Go on by about one token of some requests; the events of a request come in their order."""
        ...

    def read(self, asked: Sequence[Asked], ended: Sequence[Ended], views: Sequence[RequiredView]) -> Answered:
        """Return completions that readers can judge as they see them, with states and views."""
        ...

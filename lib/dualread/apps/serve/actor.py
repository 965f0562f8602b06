"""What the service needs of an actor: it answers many requests at once, and tells at each step what has happened."""

from collections.abc import Sequence
from typing import Any, Protocol

from dualread.apps.score.answering import Answered
from dualread.apps.serve.chat_questions import ActorRequest
from dualread.models.actor import Finished, Stream
from dualread.models.backbones.encode import Encoder
from dualread.schema.recorded import RequiredView


class ServingActor(Stream, Protocol):
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

    def wake(self) -> None:
        """Let `step` return, if it waits for the engine: there is a request to add or to abort."""
        ...

    def close(self) -> None:
        """End what the actor has started."""
        ...

    def read(self, asked: Sequence[ActorRequest], ended: Sequence[Finished], views: Sequence[RequiredView]) -> Answered:
        """Return completions that readers can judge as they see them, with states and views."""
        ...

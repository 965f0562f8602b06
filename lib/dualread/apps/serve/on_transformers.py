"""Answers with transformers as `dualread score` does; states are read in a second pass."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dualread.apps.score.answering import Answered, OpenActor
from dualread.apps.serve.chat_questions import ActorRequest
from dualread.models.actor import Finished
from dualread.models.generation._transformers_stream import TransformersStream
from dualread.schema.recorded import RequiredView, Requirements


class OnTransformers(TransformersStream):
    """Implements `actor.ServingActor`.

    Args:
        folder: The checkpoint.
        requirements: How its readers require it to be opened and asked.
        kappa: Temperature of the visual pooling; None if no reader reads states.
        batch_size: Number of completions that are made at once.
    """

    broken: str | None = None

    def __init__(self, folder: Path, requirements: Requirements, kappa: float | None, *, batch_size: int):
        self._actor = OpenActor.open(folder, requirements, kappa, batch_size=batch_size)
        super().__init__(self._actor.opened, batch_size)
        self.encoder, self.config, self.stop = self._actor.encoder, self._actor.config, self._actor.opened.stop
        self._reads_states = kappa is not None

    def wake(self) -> None:
        """See `ServingActor.wake`; a step never waits."""

    def close(self) -> None:
        """See `ServingActor.close`."""

    def read(self, asked: Sequence[ActorRequest], ended: Sequence[Finished], views: Sequence[RequiredView]) -> Answered:
        """See `ServingActor.read`; the states are read in a second pass, as `dualread score` does."""
        questions = [
            request.shown if request.read_again is None else replace(request.shown, image=request.read_again().image)
            for request in asked
            if request.shown is not None
        ]
        prompts, completions = [request.prompt for request in asked], [event.completion for event in ended]
        return self._actor.read(questions, completions, views, states=self._reads_states, encoded=prompts)

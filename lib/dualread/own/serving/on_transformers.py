"""Answers with transformers as `dualread score` does: one batch at a time, whose states are read in a second pass.

Requests that arrive while a batch is being answered wait for the next one.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dualread.declared.recorded import RequiredView, Requirements
from dualread.errors import DualReadError, in_a_line
from dualread.models.generation.base import Step
from dualread.models.generation.transformers_engine import steps
from dualread.models.prefixes import NOTHING
from dualread.own.scoring.answering import Answered, OpenActor
from dualread.own.serving.actor import Begun, BrokenRequest, Ended, Event, GrowingCompletion
from dualread.own.serving.asked import ActorRequest
from dualread.seeding import generator


class OnTransformers:
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
        self.encoder, self.config, self.stop = self._actor.encoder, self._actor.config, self._actor.opened.stop
        self._batch_size, self._reads_states = batch_size, kappa is not None
        self._waiting: dict[str, ActorRequest] = {}
        self._rows: list[GrowingCompletion] = []
        self._ended: set[int] = set()
        self._running: Iterator[Step] | None = None
        self._begun = False

    @property
    def n_open(self) -> int:
        """See `ServingActor.n_open`."""
        return len(self._waiting) + len(self._rows) - len(self._ended)

    def add(self, name: str, asked: ActorRequest) -> None:
        """See `ServingActor.add`."""
        self._waiting[name] = asked

    def abort(self, name: str) -> None:
        """See `ServingActor.abort`."""
        self._waiting.pop(name, None)
        self._ended |= {i for i, row in enumerate(self._rows) if row.name == name}

    def step(self) -> Sequence[Event]:
        """See `ServingActor.step`."""
        import torch

        try:
            if self._running is None:
                self._running = self._begin()
            with torch.inference_mode():
                step = next(self._running, None)
        except (DualReadError, RuntimeError) as error:  # RuntimeError: torch, for instance without enough memory
            names = dict.fromkeys(row.name for i, row in enumerate(self._rows) if i not in self._ended)
            self._clear()
            return [BrokenRequest(name=name, error=in_a_line(error)) for name in names]
        if step is None:
            self._clear()
            return []
        return list(self._events(step))

    def wake(self) -> None:
        """See `ServingActor.wake`; a step never waits."""

    def close(self) -> None:
        """See `ServingActor.close`."""

    def read(self, asked: Sequence[ActorRequest], ended: Sequence[Ended], views: Sequence[RequiredView]) -> Answered:
        """See `ServingActor.read`; the states are read in a second pass, as `dualread score` does."""
        questions = [one.shown for one in asked if one.shown is not None]
        return self._actor.read(questions, [one.completion for one in ended], views, states=self._reads_states)

    def _begin(self) -> Iterator[Step]:
        """Begin the next batch: the requests that have waited longest, and others that are answered in the same way."""
        first = next(iter(self._waiting.values()))
        chosen, n_rows = [], 0
        for name, asked in self._waiting.items():
            n_rows += asked.decoding.n_samples
            if _way(asked) == _way(first) and (not chosen or n_rows <= self._batch_size):
                chosen.append(name)
        batch = {name: self._waiting.pop(name) for name in chosen}
        of, self._rows = [], []
        for k, (name, asked) in enumerate(batch.items()):
            self._rows += [GrowingCompletion(name=name, asked=asked, index=i) for i in range(asked.decoding.n_samples)]
            of += [k] * asked.decoding.n_samples
        longest = max(asked.decoding.max_completion_tokens for asked in batch.values())
        decoding = first.decoding.model_copy(update={"max_completion_tokens": longest})
        opened, facts = self._actor.opened, self._actor.encoder.facts
        if first.whole:
            opened = opened.with_facts(facts.model_copy(update={"shared": NOTHING, "images_once": False}))
        prompts = [asked.prompt for asked in batch.values()]
        return steps(opened, prompts, of, decoding, self._uniform(longest), self._ended)

    def _uniform(self, n: int) -> np.ndarray | None:
        if self._rows[0].asked.decoding.temperature == 0:
            return None
        drawn = [generator("sample", r.asked.decoding.seed, r.asked.prompt.row, r.index) for r in self._rows]
        return np.stack([rng.random(n) for rng in drawn])

    def _events(self, step: Step) -> Iterator[Event]:
        states = None if self._begun else step.states.float().cpu().numpy()
        self._begun = True
        chosen = zip(step.at.tolist(), step.chosen.tolist(), step.log_probs.tolist(), strict=True)
        for k, (i, token, log_prob) in enumerate(chosen):
            if i in self._ended:
                continue
            row = self._rows[i]
            if states is not None and row.index == 0:
                yield Begun(name=row.name, state=states[k] if row.asked.shown is not None else None)
            yield row.say(token, log_prob)
            if token in self.stop or len(row.tokens) == row.asked.decoding.max_completion_tokens:
                self._ended.add(i)
                yield row.ended(self.encoder.decode(row.tokens), "stop" if token in self.stop else "length")

    def _clear(self) -> None:
        self._rows, self._ended, self._running, self._begun = [], set(), None, False


def _way(asked: ActorRequest) -> tuple[Any, ...]:
    decoding = asked.decoding
    return asked.whole, decoding.temperature, decoding.top_p if decoding.temperature else None

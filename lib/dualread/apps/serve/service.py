"""The thread between requests and an actor: it feeds the actor, and asks the readers about every answer it gives.

Whoever submits a request is told what happens to it, in order: `Before` (once), for streams `TextPart`s and, of
reports, `EarlyReading`s, one `Answer` per completion; or `Abstained` or an `AnswerError`, after which nothing comes.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from dualread.apps.score.distance import unusual
from dualread.apps.score.loading import LoadedScorer
from dualread.apps.score.readings import decision_of, in_halves
from dualread.apps.score.results import Claim, Reading
from dualread.apps.serve.actors import ServingActor
from dualread.apps.serve.chat_questions import ActorRequest, RequestReader
from dualread.apps.serve.texts import GrowingText, TokenPieces
from dualread.errors import DataError, DualReadError, in_a_line
from dualread.evaluation.thresholds import Decision
from dualread.models.actor import ClaimSpan, Completion
from dualread.models.streams import BrokenRequest, Finished, PartlyRead, PromptRead, TokenEvent


@dataclass(frozen=True, kw_only=True)
class Before:
    """What readers say before the answer: PSR; None if there is no such reader, or it does not know such requests."""

    psr: float | None


@dataclass(frozen=True, kw_only=True)
class TextPart:
    """More text of a completion, and the tokens that begin in it."""

    index: int
    text: str
    tokens: Sequence[TokenEvent]


@dataclass(frozen=True, kw_only=True)
class EarlyReading:
    """Claims of a report that goes on, which come behind those that were told before. The `Answer` has all of them."""

    index: int
    claims: Sequence[Claim]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A whole completion up to a text of `stop`, and how far it can be trusted.

    `text` is what no `TextPart` has told of it, all of it but for streams, and `tokens` are those of this text without
    special ones, for streams and where log-probabilities are wanted. `psr` is what was said before it. `reading` and
    `decision` are None where readers cannot judge it, and `notes` say why, among what else people have to know.
    """

    index: int
    completion: Completion
    text: str
    tokens: Sequence[TokenEvent]
    psr: float | None
    reading: Reading | None
    decision: Decision | None
    notes: tuple[str, ...]

    @property
    def confidence(self) -> float | None:
        """The confidence in the answer; None if readers have none, and `notes` say why."""
        return None if self.reading is None else self.reading.confidence


@dataclass(frozen=True, kw_only=True)
class Abstained:
    """No answer was made, because PSR is below the limit."""

    psr: float
    limit: float
    notes: tuple[str, ...]


class AnswerError(DualReadError):
    """The request cannot be answered."""


News = Before | TextPart | EarlyReading | Answer | Abstained
Listener = Callable[[News | AnswerError], None]
E = TypeVar("E", PromptRead, TokenEvent, PartlyRead, Finished, BrokenRequest)


@dataclass(kw_only=True)
class _PendingRequest:
    """A request, and by the number of a completion: which are open, their texts, and the claims that are being read."""

    asked: ActorRequest
    tell: Listener
    psr: float | None = None
    open: set[int]
    texts: dict[int, GrowingText] = field(default_factory=dict)
    claims: dict[int, list[ClaimSpan]] = field(default_factory=dict)

    def numbers(self, index: int) -> Sequence[int]:
        """Return the numbers of the completions that this one is: greedy completions are all the same."""
        return [index] if self.asked.encoded.decoding.n_samples > 1 else range(self.asked.sent.n)


class AnsweringService:
    """Answers requests until it is closed: none whose PSR is below `abstain_below`, if it is given.

    `requests` reads what is asked, and `pieces` are the texts of single tokens.
    """

    def __init__(self, loaded: LoadedScorer[ServingActor], *, abstain_below: float | None = None):
        self.loaded, self._broken = loaded, None
        self._actor, self._limit = loaded.actor, abstain_below
        self.requests, self.pieces = RequestReader(loaded), TokenPieces(loaded.actor.encoder.tokenizer)
        # Of reports whose claims are told before their end.
        self._divider = loaded.needs.divider if loaded.known_early else None
        self._progress = time.monotonic()
        self._inbox: queue.SimpleQueue[tuple[str, _PendingRequest | None] | None] = queue.SimpleQueue()
        self._running: dict[str, _PendingRequest] = {}
        self._thread = threading.Thread(target=self._run, name="dualread actor", daemon=True)
        self._thread.start()

    @property
    def broken(self) -> str | None:
        """Why nothing is answered any longer; None as long as all is well."""
        return self._broken or self._actor.broken

    @property
    def n_open(self) -> int:
        """How many completions the actor has not ended."""
        return self._actor.n_open

    @property
    def seconds_stuck(self) -> float:
        """For how long nothing has happened, although something is asked."""
        return time.monotonic() - self._progress if self._running else 0.0

    def submit(self, asked: ActorRequest, listener: Listener) -> None:
        """Answer a request; `listener` is called by another thread."""
        request = _PendingRequest(asked=asked, tell=listener, open=set(range(asked.sent.n)))
        self._put((asked.encoded.name, request))

    def abort(self, name: str) -> None:
        """Forget a request that nobody waits for any longer; one that is unknown or answered is ignored."""
        self._put((name, None))

    def close(self) -> None:
        """Answer what was submitted, and end."""
        self._put(None)
        self._thread.join()
        self._actor.close()

    def _put(self, item: tuple[str, _PendingRequest | None] | None) -> None:
        self._inbox.put(item)
        self._actor.wake()

    def _run(self) -> None:
        going = True
        try:
            while going or self._running:
                going &= self._take_in()
                if self._running:
                    self._step()
        except Exception as error:  # a bug here or in an engine; whoever waits is told, and /health says it
            self._broken = in_a_line(error)
        while True:
            for name in [*self._running]:
                self._finish(name, AnswerError(f"the server is broken: {self.broken}"))
            if not going or (item := self._inbox.get()) is None:
                return
            name, request = item
            if request is not None:  # whoever still comes
                self._running[name] = request

    def _take_in(self) -> bool:
        """Take in what waits, and wait for something if there is nothing to do; return False at the end."""
        while not self._running or not self._inbox.empty():
            if (item := self._inbox.get()) is None:
                return False
            name, request = item
            if request is not None:
                if not self._running:
                    self._progress = time.monotonic()
                self._running[name] = request
                self._actor.add(request.asked.encoded)
            elif name in self._running:
                self._actor.abort(name)
                self._finish(name)
        return True

    def _finish(self, name: str, last: Abstained | AnswerError | None = None) -> None:
        request = self._running.pop(name)
        if last is not None:
            request.tell(last)

    def _step(self) -> None:
        """Let the actor go on, and tell of what has happened to whom."""
        if events := self._actor.step():
            self._progress = time.monotonic()

        def events_of(kind: type[E]) -> list[E]:
            return [event for event in events if isinstance(event, kind) and event.name in self._running]

        for name, error in {event.name: event.error for event in events_of(BrokenRequest)}.items():
            self._finish(name, AnswerError(error))
        self._judge_prompts(events_of(PromptRead))
        cut_off = [end for event in events_of(TokenEvent) if (end := self._grow(event)) is not None]
        self._judge_early(events_of(PartlyRead))
        self._judge([*cut_off, *events_of(Finished)])

    def _judge_prompts(self, prompts: Sequence[PromptRead]) -> None:
        """Tell what readers say before the answer; make none where that is too little."""
        states = {
            event.name: event.state
            for event in prompts
            if event.state is not None and self._running[event.name].asked.shown is not None
        }
        values = self.loaded.readers.before_answer(np.stack([*states.values()])) if states else ()
        psr = dict(zip(states, values or [None] * len(states), strict=True))
        for event in prompts:
            request = self._running[event.name]
            request.psr = psr.get(event.name)
            if request.psr is not None and self._limit is not None and request.psr < self._limit:
                self._actor.abort(event.name)
                notes = (*self.loaded.notes, *request.asked.notes)
                self._finish(event.name, Abstained(psr=request.psr, limit=self._limit, notes=notes))
            else:
                request.tell(Before(psr=request.psr))

    def _grow(self, event: TokenEvent) -> Finished | None:
        """Add a token to a text that is followed; return the completion that a text of `stop` ends with it."""
        request = self._running[event.name]
        sent = request.asked.sent
        if not (sent.stream or sent.stop or sent.log_probs):
            return None
        text = request.texts.setdefault(event.index, GrowingText(self._actor.encoder, self.pieces, sent.stop))
        if text.is_cut:
            return None
        text.add(event)
        if sent.stream:
            part, tokens = text.take()
            if part or (tokens and sent.logprobs):
                for index in request.numbers(event.index):
                    request.tell(TextPart(index=index, text=part, tokens=tokens))
            if part and self._divider is not None and request.asked.encoded.watched:
                before = request.claims.setdefault(event.index, [])
                with suppress(DataError):  # which is told at the end
                    if new := self._divider.settled(text.told, before)[len(before) :]:
                        before.extend(new)
                        self._actor.read_early(event.name, event.index, new)
        return text.finished(request.asked.encoded.prompt) if text.is_cut else None

    def _judge_early(self, read: Sequence[PartlyRead]) -> None:
        """Tell of claims before their report is complete; where readers fail, the end says so."""
        for event, reading in zip(read, self._readings(read), strict=True):
            request = self._running[event.name]
            if isinstance(reading, Reading) and reading.claims and event.index in request.open:
                for index in request.numbers(event.index):
                    request.tell(EarlyReading(index=index, claims=reading.claims))

    def _judge(self, finished: Sequence[Finished]) -> None:
        """Tell of whole completions, and what readers say about those that they know how to judge."""
        reasons = [self._reasons(event) for event in finished]
        judged = iter(self._readings([event for event, why in zip(finished, reasons, strict=True) if not why]))
        for event, why in zip(finished, reasons, strict=True):
            reading = None if why else next(judged)
            request = self._running.get(event.name)
            if request is None or event.index not in request.open:
                continue  # another one of its completions has failed, or this one was cut off earlier, or just now
            if isinstance(reading, AnswerError):
                self._actor.abort(event.name)
                self._finish(event.name, reading)
                continue
            answer = self._answer(event, request, reading, why)
            for index in request.numbers(event.index):
                request.tell(replace(answer, index=index))
                request.open.discard(index)
            if not request.open:
                if any(text.is_cut for text in request.texts.values()):
                    self._actor.abort(event.name)
                self._finish(event.name)

    def _reasons(self, event: Finished) -> tuple[str, ...]:
        """Return why readers cannot judge a completion."""
        request = self._running[event.name]
        if (text := request.texts.get(event.index)) is not None and text.is_cut:
            return (*request.asked.reasons, "the completion is cut off at a text of `stop`")
        return self.requests.of_completion(request.asked, event.completion)

    def _answer(
        self, event: Finished, request: _PendingRequest, reading: Reading | None, reasons: Sequence[str]
    ) -> Answer:
        decision, about_reading = None, ()
        if reading is not None:
            reasons = () if reading.reason is None else (reading.reason,)
            decision = decision_of(reading, self.loaded.readers.threshold)
            about_reading = unusual(reading.distance_percentile)
        growing, text = request.texts.get(event.index), event.completion.text
        text, tokens = (text, ()) if growing is None else growing.take(text)
        without = [f"no confidence: {reason}" for reason in reasons]
        return Answer(
            index=event.index,
            completion=event.completion,
            text=text,
            tokens=tokens,
            psr=request.psr if reading is None else reading.psr,
            reading=reading,
            decision=decision,
            notes=(*without, *about_reading, *self.loaded.notes, *request.asked.notes),
        )

    def _readings(self, made: Sequence[Finished | PartlyRead]) -> Sequence[Reading | AnswerError]:
        """Return what readers say about each completion, or why they cannot."""

        def judge(events: Sequence[Finished | PartlyRead]) -> list[Reading]:
            asked = [self._running[event.name].asked for event in events]
            with self.requests.turn if self.loaded.needs.views else nullcontext():  # what views ask has to be encoded
                return self.loaded.readers.readings(self._actor.read(asked, events))

        return in_halves(made, judge, lambda error: AnswerError(in_a_line(error))) if made else []

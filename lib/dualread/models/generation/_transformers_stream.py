"""Requests that transformers answers as they come: one batch at a time, token by token.

Requests that arrive while a batch is being answered wait for the next one.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dualread.errors import DualReadError, in_a_line
from dualread.models.actor import ClaimSpan, Collecting, Completion, EncodedRequest, SeededDecoding
from dualread.models.backbones import parts
from dualread.models.backbones.checkpoint import Opened
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.prefixes import NOTHING
from dualread.models.streams import BrokenRequest, Event, Finished, GrowingCompletion, PartlyRead, PromptRead

if TYPE_CHECKING:
    from dualread.models.generation._states import Kept

EarlyClaims = dict[tuple[str, int], list[ClaimSpan]]  # of completions that go on: of which request, and of its which
_LEAST_GOING = 0.75  # finished rows are dropped when fewer than this share still go on, because that copies the others


class TransformersStream:
    """Implements `models.streams.Stream`, with `batch_size` completions at once; `collecting` is None for no states."""

    def __init__(self, opened: Opened, batch_size: int, collecting: Collecting | None = None):
        self._opened, self._batch_size, self._collecting = opened, batch_size, collecting
        self._waiting: dict[str, EncodedRequest] = {}
        self._batch: Batch | None = None

    @property
    def n_open(self) -> int:
        """See `Stream.n_open`."""
        return len(self._waiting) + (0 if self._batch is None else len(self._batch.open))

    def add(self, request: EncodedRequest) -> None:
        """See `Stream.add`."""
        self._waiting[request.name] = request

    def abort(self, name: str) -> None:
        """See `Stream.abort`."""
        self._waiting.pop(name, None)
        if self._batch is not None:
            self._batch.abort(name)

    def read_early(self, name: str, index: int, claims: Sequence[ClaimSpan]) -> None:
        """See `Stream.read_early`."""
        if self._batch is not None:
            self._batch.early.setdefault((name, index), []).extend(claims)

    def step(self) -> Sequence[Event]:
        """See `Stream.step`."""
        import torch

        self._batch = self._batch or self._begin()
        names = dict.fromkeys(row.request.name for row in self._batch.open)
        try:
            with torch.inference_mode():
                events = next(self._batch.events, None)
        except (DualReadError, RuntimeError) as error:  # RuntimeError: torch, for instance without enough memory
            self._batch = None
            return [BrokenRequest(name=name, error=in_a_line(error)) for name in names]
        if events is None:
            self._batch = None
        return events or ()

    def _begin(self) -> "Batch":
        """Begin the next batch: the requests that have waited longest, and others that are answered in the same way."""
        first = next(iter(self._waiting.values()))
        chosen: list[EncodedRequest] = []
        n_rows = 0
        for request in self._waiting.values():
            n_rows += request.decoding.n_samples
            if _way(request) == _way(first) and (not chosen or n_rows <= self._batch_size):
                chosen.append(request)
        for request in chosen:
            del self._waiting[request.name]
        opened = self._opened
        if not first.alone:
            facts = opened.encoder.facts.model_copy(update={"shared": NOTHING, "images_once": False})
            opened = opened.with_facts(facts)
        return Batch(opened, chosen, self._collecting if any(request.watched for request in chosen) else None)


def _way(request: EncodedRequest) -> tuple[Any, ...]:
    decoding = request.decoding
    return request.alone, decoding.temperature, decoding.top_p if decoding.temperature else None


def complete(
    opened: Opened, requests: Sequence[EncodedRequest], collecting: Collecting | None = None
) -> list[list[Completion]]:
    """Return the completions of each request, all of one batch.

    With `collecting`, each request has one completion; the states of all are read together, when all have ended.
    """
    kept = None
    if collecting is not None:
        from dualread.models.generation._states import Kept

        longest = max(request.decoding.max_completion_tokens for request in requests)
        kept = Kept(opened, [request.prompt for request in requests], longest, collecting)
    made = {
        (event.name, event.index): event.completion
        for events in Batch(opened, requests, kept=kept).events
        for event in events
        if isinstance(event, Finished)
    }
    rows = [[made[request.name, k] for k in range(request.decoding.n_samples)] for request in requests]
    if kept is None:
        return rows
    states = kept.read({i: completion.token_ids for i, [completion] in enumerate(rows)})
    return [[replace(completion, states=row_states)] for [completion], row_states in zip(rows, states, strict=True)]


class Batch:
    """Requests of one temperature and top_p that are answered together, token by token.

    Each completion has a generator of its own, so that samples do not depend on what else is in the batch. `kept` keeps
    all states, for which the last token of each completion is read as well; without it, `collecting` says what is read
    of watched completions, each of which ends when its last token is read.

    Attributes:
        events: What happens at each step.
        early: The claims to read while their completions go on; the caller may add some between two steps.
    """

    def __init__(
        self,
        opened: Opened,
        requests: Sequence[EncodedRequest],
        collecting: Collecting | None = None,
        kept: "Kept | None" = None,
    ):
        self._opened, self._requests, self._collecting, self._kept = opened, requests, collecting, kept
        self._longest = max(request.decoding.max_completion_tokens for request in requests)
        places = [(i, k) for i, request in enumerate(requests) for k in range(request.decoding.n_samples)]
        self._prompt_of_row = [i for i, _ in places]
        self._rows = [GrowingCompletion(request=requests[i], index=k) for i, k in places]
        self._going = dict(enumerate(self._rows))
        self._ending: dict[int, GrowingCompletion] = {}  # their last token is chosen, and to be read yet
        self._cut: set[int] = set()  # completions that need no further step, although they said no stop token
        self._aborted: set[int] = set()
        self.early = EarlyClaims()
        self.events = self._steps()

    @property
    def open(self) -> list[GrowingCompletion]:
        """The completions that have not ended."""
        return [*self._going.values(), *self._ending.values()]

    def abort(self, name: str) -> None:
        """Make no more tokens for a request."""
        for i in [i for i, row in enumerate(self._rows) if row.request.name == name]:
            self._going.pop(i, None)
            self._ending.pop(i, None)
            self._aborted.add(i)

    def _steps(self) -> Iterator[list[Event]]:
        opened, prompts = self._opened, [request.prompt for request in self._requests]
        decoding = self._requests[0].decoding.model_copy(update={"max_completion_tokens": self._longest})
        uniform = None
        if decoding.temperature > 0:  # one number more where the last token is read, too
            uniform = np.stack([row.request.generator(row.index).random(self._longest + 1) for row in self._rows])
        if self._collecting is not None:
            from dualread.models.generation._states import Kept

            of_rows = [row.request.prompt for row in self._rows]
            self._kept = Kept(opened, of_rows, self._longest, self._collecting)
        made = steps(opened, prompts, self._prompt_of_row, decoding, uniform, self._cut, self._kept)
        for number, step in enumerate(made):
            self._cut.update(self._aborted)
            events: list[Event] = [] if self._collecting is None else [*self._read()]
            if number == 0:
                firsts = [i for i, row in enumerate(self._rows) if row.index == 0]
                states = step.states.float().cpu().numpy()
                events += [PromptRead(name=self._rows[i].request.name, state=states[i]) for i in firsts]
            chosen = zip(step.at.tolist(), step.chosen.tolist(), step.log_probs.tolist(), step.states, strict=True)
            for i, token, log_prob, state in chosen:
                if i in self._going:
                    events += self._grown(i, token, log_prob, state)
            yield events

    def _read(self) -> Iterator[Event]:
        """Yield completions whose last token was read now, and `early` claims of those that go on."""
        assert self._kept is not None
        decode = self._opened.encoder.decode
        if self._ending:
            states = self._kept.read({i: row.tokens for i, row in self._ending.items()})
            for row, of_row in zip(self._ending.values(), states, strict=True):
                yield row.told(Finished, decode, states=of_row)
            self._cut.update(self._ending)  # in place, because `steps` reads it
            self._ending = {}
        watched = {i: row for i, row in self._going.items() if row.request.watched}
        claims = {i: spans for i, row in watched.items() if (spans := self.early.get((row.request.name, row.index)))}
        self.early.clear()
        if claims:
            states = self._kept.read({i: watched[i].tokens for i in claims}, list(claims.values()))
            for i, of_row in zip(claims, states, strict=True):
                yield watched[i].told(PartlyRead, decode, states=of_row)

    def _grown(self, i: int, token: int, log_prob: float, state: Any) -> Iterator[Event]:
        """Yield the token that a completion has chosen from `state`, and its end, unless its last token is read."""
        row, encoder = self._rows[i], self._opened.encoder
        top: list[tuple[int, float]] = []
        if n := row.request.top_log_probs:
            most, ids = parts.head(self._opened.model)(state).float().log_softmax(dim=-1).topk(n)
            top = list(zip(ids.tolist(), most.tolist(), strict=True))
        yield row.grow(token, log_prob, top)
        if token in encoder.stop:
            row.finish_reason = "stop"
        elif len(row.tokens) == row.request.decoding.max_completion_tokens:
            row.finish_reason = "length"
        else:
            return
        del self._going[i]
        if self._collecting is not None and row.request.watched:
            self._ending[i] = row
            return
        if row.finish_reason == "length" and len(row.tokens) < self._longest:
            self._cut.add(i)
        yield row.told(Finished, encoder.decode)


@dataclass(frozen=True, kw_only=True)
class Step:
    """The next token of each row; a row may go on for a while after its completion has ended.

    `at` is the completion of each row [rows], `chosen` the id of its token [rows], `log_probs` its log-softmax over the
    raw logits in nats [rows], `states` the final-layer states from which it was chosen [rows, D].
    """

    at: Any
    chosen: Any
    log_probs: Any
    states: Any


def steps(
    opened: Opened,
    prompts: Sequence[EncodedPrompt],
    prompt_of_row: Sequence[int],
    decoding: SeededDecoding,
    uniform: np.ndarray | None,
    ended: Set[int] = frozenset(),
    kept: "Kept | None" = None,
) -> Iterator[Step]:
    """Complete prompts in one batch, token by token; each prompt is read once, whatever the number of its completions.

    `prompt_of_row` is the position of each completion's prompt; `uniform` are random numbers in [0, 1), [completions,
    steps], or None for greedy decoding; `ended` are completions that nobody wants any longer, to which the caller may
    add some between two steps; `kept` as in `Batch`.
    """
    import torch

    from dualread.models.generation._states import CachedStates, Rows

    model, encoder, head = opened.model, opened.encoder, parts.head(opened.model)
    n_steps = decoding.max_completion_tokens + (kept is not None)  # the token that ends a row is read, too
    stop, forbidden = (torch.tensor(sorted(ids), device=model.device) for ids in (encoder.stop, encoder.forbidden))
    layers = () if kept is None else kept.layers
    if opened.encoder.facts.shared == NOTHING:
        states = Rows(opened, [prompts[i] for i in prompt_of_row], layers)
    else:
        states = CachedStates(opened, prompts, prompt_of_row, room=n_steps - 1, layers=layers)
    at = torch.arange(len(prompt_of_row), device=model.device)  # the completion of each row of `states`
    going = torch.ones(len(prompt_of_row), dtype=torch.bool, device=model.device)
    has_ended = torch.zeros_like(going)  # whether a row has chosen a token that ends it
    for step in range(n_steps):
        if kept is not None:
            kept.take(step, at, states)
        scores = head(states.last).float()
        total = scores.logsumexp(dim=-1)
        scores[:, forbidden] = -torch.inf
        chosen = _choose(scores, decoding, None if uniform is None else uniform[at.cpu().numpy(), step])
        log_probs = scores.gather(1, chosen[:, None])[:, 0] - total
        yield Step(at=at, chosen=chosen, log_probs=log_probs, states=states.last)
        before, has_ended = has_ended, has_ended | torch.isin(chosen, stop)
        going &= ~(has_ended if kept is None else before)
        if ended:
            going &= torch.tensor([row not in ended for row in at.tolist()], device=model.device)
        n_going = int(going.sum())
        if not n_going or step + 1 == n_steps:
            break
        if n_going < _LEAST_GOING * len(at):
            remaining = going.nonzero()[:, 0]
            states.select(remaining)
            at, chosen, going, has_ended = (values[remaining] for values in (at, chosen, going, has_ended))
        states.append(chosen)


def _choose(scores: Any, decoding: SeededDecoding, uniform: np.ndarray | None) -> Any:
    """Return one id per row of `scores` [rows, V]: the argmax, or the first whose cumulative probability exceeds u."""
    import torch

    if uniform is None:
        return scores.argmax(dim=-1)
    probabilities = torch.softmax(scores.double() / decoding.temperature, dim=-1)
    if decoding.top_p < 1:  # keep the smallest set of ids with at least this mass
        ordered, ids = probabilities.sort(dim=-1, descending=True, stable=True)
        outside = ordered.cumsum(dim=-1) - ordered >= decoding.top_p
        probabilities = probabilities.masked_fill(torch.zeros_like(outside).scatter(1, ids, outside), 0.0)
    reached = probabilities.cumsum(dim=-1)
    at = torch.from_numpy(uniform).to(scores.device)[:, None] * reached[:, -1:]
    return torch.searchsorted(reached, at, right=True)[:, 0]  # right: never an id of probability 0

"""Requests that transformers answers as they come: one batch at a time, token by token.

Requests that arrive while a batch is being answered wait for the next one.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
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
        self._early = EarlyClaims()
        self._waiting: dict[str, EncodedRequest] = {}
        self._open: dict[str, int] = {}  # how many completions of a request of the batch have not ended
        self._abandoned: set[str] = set()
        self._running: Iterator[Sequence[Event]] | None = None

    @property
    def n_open(self) -> int:
        """See `Stream.n_open`."""
        return len(self._waiting) + sum(self._open.values())

    def add(self, request: EncodedRequest) -> None:
        """See `Stream.add`."""
        self._waiting[request.name] = request

    def abort(self, name: str) -> None:
        """See `Stream.abort`."""
        self._waiting.pop(name, None)
        if self._open.pop(name, None):
            self._abandoned.add(name)

    def read_early(self, name: str, index: int, claims: Sequence[ClaimSpan]) -> None:
        """See `Stream.read_early`."""
        self._early.setdefault((name, index), []).extend(claims)

    def step(self) -> Sequence[Event]:
        """See `Stream.step`."""
        import torch

        try:
            if self._running is None:
                self._running = self._begin()
            with torch.inference_mode():
                events = next(self._running, None)
        except (DualReadError, RuntimeError) as error:  # RuntimeError: torch, for instance without enough memory
            broken, self._open, self._running = [name for name, n in self._open.items() if n], {}, None
            return [BrokenRequest(name=name, error=in_a_line(error)) for name in broken]
        if events is None:
            self._open, self._running = {}, None
        for event in events or ():
            if isinstance(event, Finished):
                self._open[event.name] -= 1
        return events or ()

    def _begin(self) -> Iterator[Sequence[Event]]:
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
        self._open = {request.name: request.decoding.n_samples for request in chosen}
        self._abandoned, self._early = set(), EarlyClaims()
        opened = self._opened
        if not first.alone:
            facts = opened.encoder.facts.model_copy(update={"shared": NOTHING, "images_once": False})
            opened = opened.with_facts(facts)
        collecting = self._collecting if any(request.watched for request in chosen) else None
        return stream(opened, chosen, self._abandoned, collecting=collecting, early=self._early)


def _way(request: EncodedRequest) -> tuple[Any, ...]:
    decoding = request.decoding
    return request.alone, decoding.temperature, decoding.top_p if decoding.temperature else None


def complete(
    opened: Opened, requests: Sequence[EncodedRequest], collecting: Collecting | None = None
) -> list[list[Completion]]:
    """Return the completions of each request, all of one batch; see `stream`.

    With `collecting`, each request has one completion; the states of all are read together, when all have ended.
    """
    kept = None
    if collecting is not None:
        from dualread.models.generation._states import Kept

        longest = max(request.decoding.max_completion_tokens for request in requests)
        kept = Kept(opened, [request.prompt for request in requests], longest, collecting)
    made = {
        (event.name, event.index): event.completion
        for events in stream(opened, requests, kept=kept)
        for event in events
        if isinstance(event, Finished)
    }
    rows = [[made[request.name, k] for k in range(request.decoding.n_samples)] for request in requests]
    if kept is None:
        return rows
    states = kept.read({i: completion.token_ids for i, [completion] in enumerate(rows)})
    return [[replace(completion, states=row_states)] for [completion], row_states in zip(rows, states, strict=True)]


def stream(
    opened: Opened,
    requests: Sequence[EncodedRequest],
    abandoned: Set[str] = frozenset(),
    kept: "Kept | None" = None,
    *,
    collecting: Collecting | None = None,
    early: EarlyClaims | None = None,
) -> Iterator[list[Event]]:
    """Answer requests in one batch, token by token; yield what happens at each step.

    Each completion has a generator of its own, so that samples do not depend on what else is in the batch. All requests
    have the same temperature and top_p. The caller may add to `abandoned` and `early` between two steps: the names of
    requests that nobody waits for, and the claims that are read while their completions go on. `kept` keeps all states,
    for which the last token of each completion is read as well; without it, `collecting` says what is read of watched
    completions, each of which ends when its last token is read.
    """
    places = [(i, k) for i, request in enumerate(requests) for k in range(request.decoding.n_samples)]
    rows = [GrowingCompletion(request=requests[i], index=k) for i, k in places]
    prompts, prompt_of_row = [request.prompt for request in requests], [i for i, _ in places]
    longest = max(request.decoding.max_completion_tokens for request in requests)
    decoding = requests[0].decoding.model_copy(update={"max_completion_tokens": longest})
    uniform = None
    if decoding.temperature > 0:
        drawn = [row.request.generator(row.index) for row in rows]
        uniform = np.stack([rng.random(longest + 1) for rng in drawn])  # one more where the last token is read, too
    if collecting is not None:
        from dualread.models.generation._states import Kept

        kept = Kept(opened, [prompts[i] for i in prompt_of_row], longest, collecting)
    ending: dict[int, str] = {}  # completions whose last token is to be read yet, and why they have ended
    ended: set[int] = set()
    cut: set[int] = set()  # completions that need no further step, although they said no stop token
    for number, step in enumerate(steps(opened, prompts, prompt_of_row, decoding, uniform, cut, kept)):
        if abandoned:
            cut |= {i for i, row in enumerate(rows) if row.request.name in abandoned}
            ended |= cut
        events: list[Event] = []
        if kept is not None and collecting is not None:
            whole = {i: reason for i, reason in ending.items() if i not in cut}
            going = {i: row for i, row in enumerate(rows) if i not in ended and row.request.watched}
            events += _read(opened, rows, kept, whole, going, {} if early is None else early)
            cut |= ending.keys()
            ending = {}
        if number == 0:
            states = step.states.float().cpu().numpy()
            events += [
                PromptRead(name=row.request.name, state=state)
                for row, state in zip(rows, states, strict=True)
                if row.index == 0
            ]
        chosen = zip(step.at.tolist(), step.chosen.tolist(), step.log_probs.tolist(), step.states, strict=True)
        for i, token, log_prob, state in (of_row for of_row in chosen if of_row[0] not in ended):
            row = rows[i]
            top: list[tuple[int, float]] = []
            if n := row.request.top_log_probs:
                most, ids = parts.head(opened.model)(state).float().log_softmax(dim=-1).topk(n)
                top = list(zip(ids.tolist(), most.tolist(), strict=True))
            events.append(row.grow(token, log_prob, top))
            if token in opened.encoder.stop or len(row.tokens) == row.request.decoding.max_completion_tokens:
                ended.add(i)
                reason = "stop" if token in opened.encoder.stop else "length"
                if collecting is not None and row.request.watched:
                    ending[i] = reason
                    continue
                if reason == "length" and len(row.tokens) < longest:
                    cut.add(i)
                events.append(row.told(Finished, opened.encoder.decode, finish_reason=reason))
        yield events


def _read(
    opened: Opened,
    rows: Sequence[GrowingCompletion],
    kept: "Kept",
    ending: Mapping[int, str],
    going: Mapping[int, GrowingCompletion],
    early: EarlyClaims,
) -> Iterator[Event]:
    """Yield completions whose last token was read now, and `early` claims of those that go on."""
    decode = opened.encoder.decode
    if ending:
        states = kept.read({i: rows[i].tokens for i in ending})
        for (i, reason), of_row in zip(ending.items(), states, strict=True):
            yield rows[i].told(Finished, decode, finish_reason=reason, states=of_row)
    claims = {i: spans for i, row in going.items() if (spans := early.get((row.request.name, row.index)))}
    early.clear()
    if claims:
        states = kept.read({i: rows[i].tokens for i in claims}, list(claims.values()))
        for i, of_row in zip(claims, states, strict=True):
            yield rows[i].told(PartlyRead, decode, states=of_row)


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
    add some between two steps; `kept` as in `stream`.
    """
    import torch

    from dualread.models.generation._states import CachedStates, Rows

    model, n_tokens, head = opened.model, decoding.max_completion_tokens, parts.head(opened.model)
    encoder = opened.encoder
    stop, forbidden = (torch.tensor(sorted(ids), device=model.device) for ids in (encoder.stop, encoder.forbidden))
    layers = () if kept is None else kept.layers
    if opened.encoder.facts.shared == NOTHING:
        states = Rows(opened, [prompts[i] for i in prompt_of_row], layers)
    else:
        states = CachedStates(opened, prompts, prompt_of_row, room=n_tokens - (kept is None), layers=layers)
    at = torch.arange(len(prompt_of_row), device=model.device)  # the completion of each row of `states`
    going = torch.ones(len(prompt_of_row), dtype=torch.bool, device=model.device)
    has_ended = torch.zeros_like(going)  # whether a row has chosen a token that ends it
    for step in range(n_tokens if kept is None else n_tokens + 1):
        if kept is not None:
            kept.take(step, at, states)
        scores = head(states.last).float()
        total = scores.logsumexp(dim=-1)
        scores[:, forbidden] = -torch.inf
        chosen = _choose(scores, decoding, None if uniform is None else uniform[at.cpu().numpy(), step])
        log_probs = scores.gather(1, chosen[:, None])[:, 0] - total
        yield Step(at=at, chosen=chosen, log_probs=log_probs, states=states.last)
        before, has_ended = has_ended, has_ended | torch.isin(chosen, stop)
        # Where states are kept, the token that ends a row is read, too.
        going &= ~(has_ended if kept is None else before)
        if ended:
            going &= torch.tensor([row not in ended for row in at.tolist()], device=model.device)
        n_going = int(going.sum())
        if not n_going or step + 1 == n_tokens + (kept is not None):
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

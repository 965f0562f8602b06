"""Requests that vLLM answers as they come, and the states of their answers from the pass that answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dualread.models.actor import ClaimSpan, Collecting, EncodedRequest
from dualread.models.generation._vllm import Core, sampling
from dualread.models.streams import Event, Finished, GrowingCompletion, PartlyRead, PromptRead
from dualread.seeding import derive_seed


@dataclass(kw_only=True)
class _VllmCompletion(GrowingCompletion):
    """One completion, of whose states `collecting` reads something, and `early` claims with its next token.

    vLLM knows it by `engine_name`, and may have to read its last token when it has ended.
    """

    collecting: Collecting | None
    early: list[ClaimSpan] = field(default_factory=list)
    engine_name: str = ""


class VllmStream:
    """Implements `models.streams.Stream` in `core`; `collecting` is what is read of states, None for nothing."""

    def __init__(self, core: Core, collecting: Collecting | None = None):
        self._core, self._encoder, self._states, self._collecting = core, core.encoder, core.states, collecting
        layers = [] if collecting is None else collecting.layers(core.n_layers)
        assert len(layers) < 2, "vLLM shows one layer besides the last one"
        self._states.keep_layer(*layers or [None])
        self._rows: dict[str, _VllmCompletion] = {}

    @property
    def n_open(self) -> int:
        """How many completions have not ended; the largest of the tables in which one can be left behind."""
        return max(len(self._rows), self._core.n_open, self._states.n_kept)

    def add(self, request: EncodedRequest, *, at_end: bool = False) -> None:
        """Begin to answer a request; if `at_end`, all that is said comes at its end. See `Stream.add`."""
        collecting = self._collecting if request.watched else None
        prompt, decoding = request.prompt, request.decoding.model_copy(update={"n_samples": 1})
        n_read = len(prompt.token_ids) + decoding.max_completion_tokens + (collecting is not None)
        self._core.check_length(prompt.row, n_read)
        seed = derive_seed("sample", decoding.seed, prompt.row)
        parameters, engine_prompt = sampling(decoding, seed, self._encoder), self._core.given(prompt)
        if not request.log_probs:
            del parameters["logprobs"]
        elif request.top_log_probs:
            parameters["logprobs"] = request.top_log_probs
        for index in range(request.decoding.n_samples):
            row, name = _VllmCompletion(request=request, index=index, collecting=collecting), f"{request.name}/{index}"
            of_row = {**parameters, "seed": seed + index}
            if collecting is not None:
                # The states of an image that vLLM has in its cache, but nobody here has, have to be computed again.
                of_row["skip_reading_prefix_cache"] = not self._states.will_have_image(prompt)
            row.engine_name = self._core.add(name, engine_prompt, of_row, at_end=at_end)
            if collecting is not None:
                self._states.keep(row.engine_name, prompt)
            self._rows[name] = row

    def abort(self, name: str) -> None:
        """Forget a request that nobody waits for any longer; an unknown one is ignored."""
        gone = {row_name: row for row_name, row in self._rows.items() if row.request.name == name}
        self._core.abort(list(gone))
        for row_name, row in gone.items():
            del self._rows[row_name]
            self._states.forget(row.engine_name)

    def read_early(self, name: str, index: int, claims: Sequence[ClaimSpan]) -> None:
        """See `Stream.read_early`."""
        if row := self._rows.get(f"{name}/{index}"):
            row.early.extend(claims)

    def step(self) -> list[Event]:
        """Go on by one step of vLLM; the events of a request come in their order."""
        events: list[Event] = []
        ended, early = [], []
        for output in self._core.step():
            if (row := self._rows.get(output.request_id)) is None:
                continue
            [made] = output.outputs
            is_rest = bool(row.finish_reason)
            if not is_rest:
                events += self._grown(row, made)
            if row.early and not made.finish_reason:
                early.append(row)
            if made.finish_reason:
                del self._rows[output.request_id]
                if is_rest or not self._lacks_states(row):
                    ended.append(row)
                else:
                    self._read_rest(f"{output.request_id}/rest", row)
        return [*events, *self._partly_read(early), *self._finished(ended)]

    def _grown(self, row: _VllmCompletion, made: Any) -> list[Event]:
        events: list[Event] = []
        if not row.tokens and row.index == 0:
            last = len(row.request.prompt.token_ids) - 1
            state = None if row.collecting is None else self._states.state(row.engine_name, last)
            numbers = None if state is None else state.float().cpu().numpy()
            events.append(PromptRead(name=row.request.name, state=numbers))
        for k, token in enumerate(made.token_ids):
            choices = {} if made.logprobs is None else made.logprobs[k]
            log_probs = {candidate: choice.logprob for candidate, choice in choices.items()}
            most = sorted(log_probs.items(), key=lambda pair: -pair[1])[: row.request.top_log_probs]
            events.append(row.grow(token, log_probs.get(token), most))
        row.finish_reason = made.finish_reason or ""
        return events

    def _lacks_states(self, row: _VllmCompletion) -> bool:
        """Return whether vLLM has to read more: the last token, which is chosen, or an image of another request."""
        if row.collecting is None:
            return False
        return row.collecting.reads_last(row.tokens, self._encoder) or not self._states.has_image(row.engine_name)

    def _read_rest(self, name: str, row: _VllmCompletion) -> None:
        """Let vLLM read what it has not computed of an answer, as a request with this name."""
        prompt = self._core.given(row.request.prompt.followed_by(row.tokens))
        skip = not self._states.has_image(row.engine_name)
        asked = {"temperature": 0.0, "max_tokens": 1, "skip_reading_prefix_cache": skip}
        before, row.engine_name = row.engine_name, self._core.add(name, prompt, asked, at_end=True)
        self._states.go_on(before, row.engine_name)
        self._rows[name] = row

    def _partly_read(self, rows: Sequence[_VllmCompletion]) -> list[PartlyRead]:
        """Return what is read early; nothing of a row whose image another request has yet to read."""
        states = self._read(rows, early=True)
        for row in rows:
            row.early.clear()
        read = [(row, states[row.engine_name]) for row in rows if row.engine_name in states]
        return [row.told(PartlyRead, self._encoder.decode, states=of_row) for row, of_row in read]

    def _finished(self, rows: Sequence[_VllmCompletion]) -> list[Finished]:
        states, decode = self._read(rows), self._encoder.decode
        for row in rows:
            self._states.forget(row.engine_name)
        return [row.told(Finished, decode, states=states.get(row.engine_name)) for row in rows]

    def _read(self, rows: Sequence[_VllmCompletion], *, early: bool = False) -> dict[str, Any]:
        """Return what is read of the states of rows, by the names that vLLM has; nothing of those that lack some."""
        import torch

        seen = [row for row in rows if row.collecting and self._states.has_image(row.engine_name)]
        if self._collecting is None or not seen:
            return {}
        claims = [list(row.early) for row in seen] if early else None
        with torch.inference_mode():
            passes = [
                self._states.of_pass(row.engine_name, len(row.request.prompt.token_ids), len(row.tokens))
                for row in seen
            ]
            tokens = [row.tokens for row in seen]
            read = self._collecting.read(passes, tokens, self._core.logits, self._encoder, claims)
        return dict(zip((row.engine_name for row in seen), read, strict=True))

"""Answers with vLLM: all requests at once, and their states from the pass that answers, without a second one."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dualread.declared.recorded import RequiredView, Requirements
from dualread.errors import ArtifactError, DualReadError, in_a_line
from dualread.models.backbones._checkpoint_files import read_config
from dualread.models.backbones.checkpoint import check
from dualread.models.generation._vllm import Core, prepare
from dualread.models.generation.vllm_engine import encoder_of, sampling
from dualread.models.replay.forward import vectors_of
from dualread.models.replay.positions import Positions, locate
from dualread.own.scoring.answering import Answered, as_answered
from dualread.own.serving.actor import Begun, BrokenRequest, Ended, Event, GrowingCompletion
from dualread.own.serving.asked import ActorRequest
from dualread.seeding import derive_seed

# What readers may read here: vLLM shows the states of the final layer alone.
_LOG_PROB = "answer_log_prob"
FEATURES = ("h_pre", "h_close", "h_ans", "h_global", "h_evid", _LOG_PROB)


@dataclass(kw_only=True)
class _VllmCompletion(GrowingCompletion):
    """One completion.

    Attributes:
        engine_name: By which vLLM knows it.
        at: The positions that are read, once it has ended.
    """

    engine_name: str = ""
    finish_reason: str = ""
    at: Positions | None = None


class OnVllm:
    """Implements `actor.ServingActor`.

    Args:
        folder: The checkpoint.
        requirements: How its readers require it to be opened and asked.
        kappa: Temperature of the visual pooling; None if no reader reads states.
        max_num_seqs: Completions at once.
        most_images: Of a request.

    Attributes:
        reads: What the readers read of `FEATURES`; nothing else is brought to the host.
    """

    reads: Collection[str] = FEATURES

    def __init__(
        self, folder: Path, requirements: Requirements, kappa: float | None, *, max_num_seqs: int, most_images: int
    ):
        prepare()
        check(folder, requirements.model)
        self.encoder, self.stop, self._forbidden = encoder_of(folder, requirements.model)
        self.config = read_config(folder).get_text_config()
        engine = {"max_num_seqs": max_num_seqs}
        self._core = Core(folder, requirements.model, self.encoder, engine, most_images)
        self._states, self._kappa, self._contract = self._core.watch(), kappa, requirements.contract
        self._rows: dict[str, _VllmCompletion] = {}
        self._refused: list[BrokenRequest] = []

    @property
    def n_open(self) -> int:
        """See `ServingActor.n_open`; the largest of the tables in which a completion can be left behind."""
        return max(len(self._rows), self._core.n_open, self._states.n_kept)

    def add(self, name: str, asked: ActorRequest) -> None:
        """See `ServingActor.add`."""
        decoding = asked.decoding.model_copy(update={"n_samples": 1})
        seed = derive_seed("sample", decoding.seed, asked.prompt.row)
        parameters = sampling(decoding, seed, self._forbidden, self.stop)
        if not (asked.log_probs or _LOG_PROB in self.reads):
            del parameters["logprobs"]  # vLLM would normalize the logits of the whole vocabulary at each step
        try:
            given = self._core.given(asked.prompt, ())
            for index in range(asked.decoding.n_samples):
                row = _VllmCompletion(name=name, asked=asked, index=index)
                self._begin(row, given, {**parameters, "seed": seed + index})
        except (DualReadError, ValueError) as error:  # ValueError: vLLM, of what it cannot do
            self.abort(name)
            self._refused.append(BrokenRequest(name=name, error=in_a_line(error)))

    def _begin(self, row: _VllmCompletion, given: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
        prompt, token, watched = row.asked.prompt, self.encoder.image_token_id, self._is_watched(row)
        # The states of an image that vLLM has in its cache, but nobody here has, have to be computed again.
        again = watched and not self._states.knows_image(prompt, token)
        named = f"{row.name}/{row.index}"
        row.engine_name = self._core.add(named, dict(given), {**parameters, "skip_reading_prefix_cache": again})
        self._rows[named] = row
        if watched:
            self._states.keep(row.engine_name, prompt, token)

    def _is_watched(self, row: _VllmCompletion) -> bool:
        return self._kappa is not None and row.asked.shown is not None

    def abort(self, name: str) -> None:
        """See `ServingActor.abort`."""
        gone = [named for named, row in self._rows.items() if row.name == name]
        self._core.abort(gone)
        for named in gone:
            self._states.forget(self._rows.pop(named).engine_name)

    def step(self) -> Sequence[Event]:
        """See `ServingActor.step`."""
        events: list[Event] = list(self._refused)
        self._refused.clear()
        for output in self._core.step():
            if (row := self._rows.get(output.request_id)) is None:
                continue
            [said] = output.outputs
            if row.at is None:
                events += self._said(row, said)
            if said.finish_reason:
                del self._rows[output.request_id]
                events += self._at_its_end(row)
        return events

    def _said(self, row: _VllmCompletion, said: Any) -> list[Event]:
        events: list[Event] = []
        if not row.tokens and row.index == 0:
            last = len(row.asked.prompt.token_ids) - 1
            wanted = self._is_watched(row) and "h_pre" in self.reads
            state = self._states.state(row.engine_name, last) if wanted else None
            events.append(Begun(name=row.name, state=None if state is None else state.float().cpu().numpy()))
        for k, token in enumerate(said.token_ids):
            events.append(row.say(token, None if said.logprobs is None else said.logprobs[k][token].logprob))
        row.finish_reason = said.finish_reason or ""
        return events

    def _at_its_end(self, row: _VllmCompletion) -> list[Event]:
        """Return the whole completion with its states; or nothing yet, if vLLM has to read its last token first.

        The last token of a completion is chosen and not read. Where there is no answer block, its state is needed.
        """
        states = None
        if self._is_watched(row):
            if row.at is None:
                row.at = locate(row.tokens, self.encoder.decode, self.stop)
                if len(row.tokens) - 1 in (row.at.close, *row.at.answer):
                    self._read_last(row)
                    return []
            states = self._vectors(row, row.at)
            self._states.forget(row.engine_name)
        return [row.ended(self.encoder.decode(row.tokens), row.finish_reason, states)]

    def _read_last(self, row: _VllmCompletion) -> None:
        named, before = f"{row.name}/{row.index}/last", row.engine_name
        given = self._core.given(row.asked.prompt, row.tokens)
        row.engine_name = self._core.add(named, given, {"temperature": 0.0, "max_tokens": 1})
        self._rows[named] = row
        self._states.go_on(before, row.engine_name)

    def _vectors(self, row: _VllmCompletion, at: Positions) -> Mapping[str, np.ndarray] | None:
        """Return what readers read, as the replay reads it; None if vLLM did not compute all of it."""
        import torch

        first, image = len(row.asked.prompt.token_ids), self._states.image(row.engine_name)
        read = (first - 1, first + at.close, *(first + t for t in at.answer))
        found = [self._states.state(row.engine_name, position) for position in read]
        if image is None or any(state is None for state in found):
            return None
        assert self._kappa is not None
        # As if the completion consisted of the tokens that are read: the closing one, and then those of the answer.
        only = replace(at, close=0, answer=tuple(range(1, len(found) - 1)))
        with torch.inference_mode():
            vectors = vectors_of(torch.stack(found), None, image, only, self._kappa)
            names = [name for name in vectors if name in self.reads]
            together = torch.stack([vectors[name].float() for name in names]).cpu() if names else ()  # one copy
        numbers = {name: np.asarray(of) for name, of in zip(names, together, strict=True)}
        if _LOG_PROB in self.reads:
            said = np.array([row.log_probs[t] for t in at.answer])
            numbers[_LOG_PROB] = said.mean(keepdims=True).astype(np.float32)
        return numbers

    def read(self, asked: Sequence[ActorRequest], ended: Sequence[Ended], views: Sequence[RequiredView]) -> Answered:
        """See `ServingActor.read`; the states are those of the pass that has answered."""
        states = [one.states for one in ended if one.states is not None]
        if self._kappa is not None and len(states) != len(ended):
            raise ArtifactError("vLLM has not computed all states of an answer. Report this, with vLLM's version.")
        assert not views, "refused before"
        questions = [one.shown for one in asked if one.shown is not None]
        return as_answered(
            questions,
            [one.completion for one in ended],
            self._contract,
            lambda name: np.stack([of[name] for of in states]),
        )

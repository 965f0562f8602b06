"""The process in which vLLM answers: all requests at once, and their states from the pass that answers.

It gets calls of `VllmAnswering` through a connection, and tells after each step what has happened. It ends when the
other end, `on_vllm`, is closed, in whatever way that happens.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from dualread.declared.recorded import Requirements
from dualread.errors import DualReadError, in_a_line
from dualread.models.generation._vllm import Core, prepare
from dualread.models.generation.vllm_engine import encoder_of, sampling
from dualread.models.replay.forward import vectors_of
from dualread.models.replay.positions import Positions, locate
from dualread.own.serving.actor import Begun, BrokenRequest, Event, GrowingCompletion
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


class VllmAnswering:
    """Answers requests in this process; the methods are those of `actor.ServingActor`.

    Args:
        folder: The checkpoint.
        requirements: How its readers require it to be opened and asked.
        kappa: Temperature of the visual pooling; None if no reader reads states.
        max_num_seqs: Completions at once.
        most_images: Of a request.
    """

    def __init__(
        self, folder: Path, requirements: Requirements, kappa: float | None, *, max_num_seqs: int, most_images: int
    ):
        prepare()
        self.encoder, self.stop, self._forbidden = encoder_of(folder, requirements.model)
        engine = {"max_num_seqs": max_num_seqs}
        self._core = Core(folder, requirements.model, self.encoder, engine, most_images)
        self._states, self._kappa, self._reads = self._core.watch(), kappa, frozenset(FEATURES)
        self._rows: dict[str, _VllmCompletion] = {}
        self._refused: list[BrokenRequest] = []

    @property
    def n_open(self) -> int:
        """See `ServingActor.n_open`; the largest of the tables in which a completion can be left behind."""
        return max(len(self._rows), self._core.n_open, self._states.n_kept)

    def read_only(self, features: Collection[str]) -> None:
        """Set what the readers read of `FEATURES`; nothing else is brought to the host."""
        self._reads = frozenset(features)

    def add(self, name: str, asked: ActorRequest) -> None:
        """See `ServingActor.add`."""
        decoding = asked.decoding.model_copy(update={"n_samples": 1})
        seed = derive_seed("sample", decoding.seed, asked.prompt.row)
        parameters = sampling(decoding, seed, self._forbidden, self.stop)
        if not (asked.log_probs or _LOG_PROB in self._reads):
            del parameters["logprobs"]  # vLLM would normalize the logits of the whole vocabulary at each step
        try:
            for index in range(asked.decoding.n_samples):
                row = _VllmCompletion(name=name, asked=asked, index=index)
                self._begin(row, {**parameters, "seed": seed + index})
        except (DualReadError, ValueError) as error:  # ValueError: vLLM, of what it cannot do
            self.abort(name)
            self._refused.append(BrokenRequest(name=name, error=in_a_line(error)))

    def _begin(self, row: _VllmCompletion, parameters: Mapping[str, Any]) -> None:
        named, prompt = f"{row.name}/{row.index}", row.asked.prompt
        if self._is_watched(row):
            row.engine_name = self._core.add_watched(named, prompt, parameters, self._states, whole=False)
        else:
            row.engine_name = self._core.add(named, self._core.given(prompt, ()), parameters)
        self._rows[named] = row

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
            wanted = self._is_watched(row) and "h_pre" in self._reads
            state = self._states.state(row.engine_name, last) if wanted else None
            events.append(Begun(name=row.name, state=None if state is None else state.float().cpu().numpy()))
        for k, token in enumerate(said.token_ids):
            events.append(row.say(token, None if said.logprobs is None else said.logprobs[k][token].logprob))
        row.finish_reason = said.finish_reason or ""
        return events

    def _at_its_end(self, row: _VllmCompletion) -> list[Event]:
        """Return the whole completion with its states; or nothing yet, if vLLM has to read more of it first.

        That is the last token where there is no answer block, and an image whose states another request was computing
        that was aborted.
        """
        states = None
        if self._is_watched(row):
            if row.at is None:
                row.at = locate(row.tokens, self.encoder.decode, self.stop)
                last = len(row.tokens) - 1 in (row.at.close, *row.at.answer)
                if last or not self._states.has_image(row.engine_name):
                    named, before, prompt = f"{row.name}/{row.index}/rest", row.engine_name, row.asked.prompt
                    row.engine_name = self._core.read_rest(named, before, prompt, row.tokens, self._states)
                    self._rows[named] = row
                    return []
            states = self._vectors(row, row.at)
            self._states.forget(row.engine_name)
        return [row.ended(self.encoder.decode(row.tokens), row.finish_reason, states)]

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
            names = [name for name in vectors if name in self._reads]
            together = torch.stack([vectors[name].float() for name in names]).cpu() if names else ()  # one copy
        numbers = {name: np.asarray(of) for name, of in zip(names, together, strict=True)}
        if _LOG_PROB in self._reads:
            said = np.array([row.log_probs[t] for t in at.answer])
            numbers[_LOG_PROB] = said.mean(keepdims=True).astype(np.float32)
        return numbers


def answer(connection: Connection, opens: Callable[[], Any]) -> None:
    """Open vLLM, and answer calls until the other end of `connection` is closed."""
    calls: SimpleQueue[tuple[str, tuple[Any, ...]] | None] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, calls), daemon=True).start()
    try:
        actor = opens()
        connection.send(None)
        idle = True
        while True:
            while idle or not calls.empty():
                if (call := calls.get()) is None:
                    return
                method, given = call
                getattr(actor, method)(*given)
                idle = False
            said = actor.step()
            connection.send((said, actor.n_open))
            idle = not actor.n_open
    except (BrokenPipeError, ConnectionResetError):
        return
    except DualReadError as error:
        connection.send(error)
    except Exception as error:  # a bug here or in vLLM; as text, because not every exception can be pickled
        connection.send(RuntimeError(in_a_line(error)))
        raise


def _receive(connection: Connection, calls: SimpleQueue[Any]) -> None:
    """Pass on calls, None as the last one; in a thread, because pixels fill the connection, and whoever sends waits."""
    call: Any = ()
    while call is not None:
        try:
            call = connection.recv()
        except (EOFError, OSError):
            call = None
        calls.put(call)


def main() -> None:
    """Run the process that `on_vllm` starts."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it goes to all processes of a service; the first one closes us
    with Connection(int(sys.argv[1])) as connection:
        given, options = connection.recv()
        answer(connection, lambda: VllmAnswering(*given, **options))
    os._exit(0)  # to tear down vLLM and torch object by object would take seconds, in which the GPU is not free


if __name__ == "__main__":
    main()

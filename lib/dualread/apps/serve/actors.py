"""What the service needs of an actor, and the two that there are: on transformers, and on vLLM.

vLLM runs in a process of its own (`vllm_process`), so that the Python code of neither waits for the other: this one
reads requests, asks readers, and writes replies; the other one makes tokens.
"""

import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dualread.apps.score.answering import ActorNeeds, Answered, OpenActor, as_answered
from dualread.apps.score.results import ShownQuestion
from dualread.apps.serve import vllm_process
from dualread.apps.serve.chat_questions import ActorRequest
from dualread.apps.serve.vectors import ReadersVectors
from dualread.errors import ArtifactError, DualReadError, in_a_line
from dualread.models.actor import ClaimSpan, EncodedRequest, Request
from dualread.models.backbones._checkpoint_files import read_config
from dualread.models.backbones.checkpoint import check
from dualread.models.backbones.encode import EncodedPrompt, Encoder
from dualread.models.generation._transformers_stream import TransformersStream
from dualread.models.generation._vllm import prepare
from dualread.models.generation.data_parallel import send_as_arrays
from dualread.models.generation.vllm_engine import encoder_of
from dualread.models.streams import Event, Finished, PartlyRead, Stream

Made = Finished | PartlyRead  # a completion that readers judge, or claims of one that goes on
_SECONDS_TO_END = 10  # for vLLM's process, when all is answered


class ServingActor(Stream, Protocol):
    """An opened checkpoint that answers requests as they arrive. One thread calls all but `n_open` and `wake`.

    `config` is the configuration of the model's text part, and `broken` says why nothing is answered any longer, where
    the actor knows that before it is asked for a step.
    """

    encoder: Encoder
    config: Any
    broken: str | None = None

    def wake(self) -> None:
        """Let `step` return, if it waits for the engine: there is a request to add or to abort."""

    def close(self) -> None:
        """End what the actor has started, if anything."""

    def read(self, asked: Sequence[ActorRequest], made: Sequence[Made]) -> Answered:
        """Return completions that readers can judge as they see them, with states and views."""
        ...


def of_pass(needs: ActorNeeds, asked: Sequence[ShownQuestion], made: Sequence[Made]) -> Answered:
    """Return completions as readers see them, with the states of the pass that has made them, if they read some."""
    completions, contract = [event.completion for event in made], needs.requirements.contract
    if not needs.features:
        return as_answered(asked, completions, contract, None, needs.claims(asked, completions))
    if any(completion.states is None for completion in completions):
        needs.claims(asked, completions)  # raises what is wrong with them
        raise ArtifactError("vLLM has not computed all states of an answer. Report this, with vLLM's version.")
    rows = [vectors for completion in completions for _, vectors in completion.states]
    claims = [[span for span, _ in completion.states] for completion in completions]

    def states(name: str) -> np.ndarray:
        return np.stack([vectors[name] for vectors in rows]) if rows else np.zeros((0, 1), np.float32)

    return as_answered(asked, completions, contract, states, None if needs.divider is None else claims)


class OnTransformers(TransformersStream, ServingActor):
    """Answers as `dualread score` does, `batch_size` completions at once.

    States of answers are read in a second pass, as there; those of claims, some of which are told before the answer
    ends, in the pass that answers.
    """

    def __init__(self, folder: Path, needs: ActorNeeds, *, batch_size: int):
        self._actor, self._needs = OpenActor(folder, needs, batch_size=batch_size), needs
        vectors = None if needs.divider is None else ReadersVectors.from_needs(needs)
        super().__init__(self._actor.opened, batch_size, vectors)
        self.encoder, self.config = self._actor.encoder, self._actor.config

    def read(self, asked: Sequence[ActorRequest], made: Sequence[Made]) -> Answered:
        """See `ServingActor.read`; pictures are decoded again for views alone."""
        questions = [
            replace(request.shown, images=[read_again().image for read_again in request.read_again])
            for request in asked
            if request.shown is not None
        ]
        if self._needs.divider is not None:
            return self._actor.with_views(of_pass(self._needs, questions, made), questions)
        requests = [
            _EncodedRequest(text=to.question, images=(), image_name=to.name, row=to.name, prompt=request.encoded.prompt)
            for to, request in zip(questions, asked, strict=True)
        ]
        return self._actor.read(questions, requests, [event.completion for event in made])


@dataclass(frozen=True, kw_only=True)
class _EncodedRequest(Request):
    prompt: EncodedPrompt

    def encoded(self, encoder: Encoder) -> EncodedPrompt:
        return self.prompt


class OnVllm:
    """Answers in a process of its own (`ServingActor`); arguments as in `vllm_process.VllmAnswering`.

    The states are those of the pass that has answered, and there are no views.
    """

    def __init__(self, folder: Path, needs: ActorNeeds, **options: Any):
        prepare()
        send_as_arrays()
        model = needs.requirements.model
        check(folder, model)
        self.broken: str | None = None
        self._n_open, self._needs = 0, needs
        self._events: queue.SimpleQueue[Sequence[Event]] = queue.SimpleQueue()
        self._connection, theirs = Pipe()
        with theirs:
            end = theirs.fileno()
            # -P: nothing of the working directory is imported. In a session of its own, so that Ctrl-C reaches this
            # process alone; what vLLM prints is no reply of ours.
            command = [sys.executable, "-P", "-m", vllm_process.__name__, str(end)]
            self._process = subprocess.Popen(
                command, pass_fds=[end], stdin=subprocess.DEVNULL, stdout=2, start_new_session=True
            )
        try:
            self._connection.send(((folder, needs), options))
            self.encoder = encoder_of(folder, model)
            self.config = read_config(folder).get_text_config()
            self._received()
        except Exception:
            self.close()
            raise
        threading.Thread(target=self._receive, name="dualread vllm", daemon=True).start()

    @property
    def n_open(self) -> int:
        """As it was after vLLM's last step."""
        return self._n_open

    def add(self, request: EncodedRequest) -> None:
        """See `Stream.add`."""
        self._connection.send(("add", (request,)))

    def abort(self, name: str) -> None:
        """See `Stream.abort`."""
        self._connection.send(("abort", (name,)))

    def read_early(self, name: str, index: int, claims: Sequence[ClaimSpan]) -> None:
        """See `Stream.read_early`."""
        self._connection.send(("read_early", (name, index, claims)))

    def step(self) -> Sequence[Event]:
        """See `Stream.step`."""
        events = self._events.get()
        if self.broken is not None:
            raise DualReadError(self.broken)
        return events

    def wake(self) -> None:
        """See `ServingActor.wake`."""
        self._events.put(())

    def read(self, asked: Sequence[ActorRequest], made: Sequence[Made]) -> Answered:
        """See `ServingActor.read`."""
        return of_pass(self._needs, [request.shown for request in asked if request.shown is not None], made)

    def close(self) -> None:
        """See `ServingActor.close`."""
        with suppress(OSError):  # it has ended already
            self._connection.send(None)
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _received(self) -> Any:
        try:
            reply = self._connection.recv()
        except (EOFError, OSError) as error:
            raise DualReadError(
                "vLLM's process has ended, perhaps for lack of memory. Start the server again, with a smaller"
                " --batch-size if it happens again."
            ) from error
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _receive(self) -> None:
        try:
            while True:
                events, self._n_open = self._received()
                if events:
                    self._events.put(events)
        except Exception as error:  # of the other process
            self.broken = in_a_line(error)
            self.wake()

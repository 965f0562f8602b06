"""The process in which vLLM answers: all requests at once, and their states from the pass that answers.

It gets calls of `VllmAnswering` through a connection, and tells after each step what has happened. It ends when the
other end, `actors.OnVllm`, is closed, in whatever way that happens.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from dualread.apps.score.answering import ActorNeeds
from dualread.apps.serve.vectors import ReadersVectors
from dualread.errors import DualReadError, in_a_line
from dualread.models.actor import EncodedRequest
from dualread.models.generation._vllm import Core, prepare
from dualread.models.generation._vllm_stream import VllmStream
from dualread.models.generation.vllm_engine import encoder_of
from dualread.models.streams import BrokenRequest, Event


class VllmAnswering(VllmStream):
    """Answers requests in this process, `max_num_seqs` completions at once; a request has up to `most_images`."""

    def __init__(self, folder: Path, needs: ActorNeeds, *, max_num_seqs: int, most_images: int):
        prepare()
        encoder = encoder_of(folder, needs.requirements.model)
        core = Core(folder, needs.requirements.model, encoder, {"max_num_seqs": max_num_seqs}, most_images)
        super().__init__(core, ReadersVectors.from_needs(needs))
        self._refused: list[Event] = []

    def add(self, request: EncodedRequest, *, at_end: bool = False) -> None:
        """Begin to answer a request, or let the next step say why not."""
        try:
            super().add(request, at_end=at_end)
        except (DualReadError, ValueError) as error:  # ValueError: vLLM, of what it cannot do
            self.abort(request.name)
            self._refused.append(BrokenRequest(name=request.name, error=in_a_line(error)))

    def step(self) -> list[Event]:
        """Go on by one step of vLLM."""
        refused, self._refused = self._refused, []
        return [*refused, *super().step()]


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
                method, arguments = call
                getattr(actor, method)(*arguments)
                idle = False
            events = actor.step()
            connection.send((events, actor.n_open))
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
    with suppress(EOFError, OSError):
        while (call := connection.recv()) is not None:
            calls.put(call)
    calls.put(None)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it goes to all processes of a service; the first one closes us
    with Connection(int(sys.argv[1])) as connection:
        arguments, options = connection.recv()
        answer(connection, lambda: VllmAnswering(*arguments, **options))
    os._exit(0)  # to tear down vLLM and torch object by object would take seconds, in which the GPU is not free

"""Data parallelism: one process with one engine per GPU, all of the same checkpoint; requests are split by image.

vLLM's own data parallelism is not used: it is made for a server, and does not split a list of requests.
"""

import contextlib
import multiprocessing
import operator
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

import numpy as np

from dualread import devices
from dualread.errors import DualReadError, in_a_line
from dualread.models.actor import AnsweringActor, Collecting, Completion, Loglikelihoods, Request, SeededDecoding
from dualread.models.backbones.encode import Encoder
from dualread.progress import work_on

_LAUNCHED = ("WORLD_SIZE", "RANK", "LOCAL_RANK")  # of a process that trains together with others; engines are alone


def visible_gpus() -> list[str]:
    """Return the GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    import torch

    n = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",")[:n] if named else [str(i) for i in range(n)]


def by_image(requests: Sequence[Request]) -> list[int]:
    """Return the positions of `requests` sorted by image; requests about one image keep their order."""
    return sorted(range(len(requests)), key=lambda i: (requests[i].image_name, i))


def by_length(requests: Sequence[Request], *, by_image: bool) -> list[int]:
    """Return the positions of `requests` sorted by the length of their texts, and before that by image on request."""
    # Ties are broken by position, so the order depends on the list of requests and on nothing else.
    lengths = [len(request.text) + len(request.prefix) for request in requests]
    names = [request.image_name if by_image else "" for request in requests]
    return sorted(range(len(requests)), key=lambda i: (names[i], lengths[i], i))


class DataParallelEngine:
    """Several engines that answer as one; implements `dualread.models.actor.AnsweringActor`.

    `open_one`, at the top level of a module so that it can be pickled, opens the engine of one process with
    `arguments`; `gpus` holds the value of CUDA_VISIBLE_DEVICES for each process.
    """

    def __init__(
        self,
        open_one: Callable[..., AnsweringActor],
        arguments: tuple[Any, ...],
        gpus: Sequence[str],
        encoder: Encoder,
    ):
        self.encoder = encoder
        send_as_arrays()
        spawn = multiprocessing.get_context("spawn")
        self._workers: list[Connection] = []
        for gpu in gpus:
            ours, theirs = spawn.Pipe()
            # Daemons end when this process exits. If it is killed, they end when they next use the closed pipe.
            lease = [_Inherited(descriptor) for descriptor in devices.held()]
            spawn.Process(target=_serve, args=(theirs, gpu, open_one, arguments, lease), daemon=True).start()
            theirs.close()
            self._workers.append(ours)

    def answer(
        self, requests: Sequence[Request], decoding: SeededDecoding, collecting: Collecting | None = None
    ) -> list[list[Completion]]:
        """Complete `requests`; see `AnsweringActor.answer`."""
        more = () if collecting is None else (collecting,)
        return self._call_all("answer", requests, lambda part: ([requests[i] for i in part], decoding, *more))

    def loglikelihoods(
        self, requests: Sequence[Request], continuations: Sequence[Sequence[Sequence[int]]]
    ) -> list[Loglikelihoods]:
        """Score the `continuations` of each request; see `AnsweringActor.loglikelihoods`."""
        return self._call_all(
            "loglikelihoods", requests, lambda part: ([requests[i] for i in part], [continuations[i] for i in part])
        )

    def _call_all(self, method: str, requests: Sequence[Request], arguments: Callable[[list[int]], Any]) -> list[Any]:
        parts = self.parts(by_image(requests))  # few images occur in more than one part
        results: dict[int, Any] = {}
        for part, outcome in zip(parts, self.call(method, [arguments(part) for part in parts]), strict=True):
            results.update(zip(part, outcome, strict=True))
        return [results[i] for i in range(len(results))]

    def call(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return what `method` of each engine returns for its own arguments.

        Raises:
            DualReadError: A process ended, or its engine failed.
        """
        for number, of_engine in enumerate(arguments):
            with self._answering(number):
                self._workers[number].send((method, of_engine))
        outcomes = []
        for number in range(len(arguments)):
            with self._answering(number):
                outcomes.append(self._workers[number].recv())
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return outcomes

    @contextlib.contextmanager
    def _answering(self, number: int) -> Iterator[None]:
        """Explain that a process has ended, for as long as it is sent something or read from."""
        try:
            yield
        except (EOFError, OSError) as error:
            raise DualReadError(
                f"generation: process {number} of {len(self._workers)} ended without an answer, perhaps for lack of"
                " memory. Expected one result per request. Run the same command again; if it happens again, lower"
                " max_num_seqs."
            ) from error

    def call_each(self, method: str, *arguments: Any) -> list[Any]:
        """Return what `method` of each engine returns for the same arguments; see `call`."""
        return self.call(method, [arguments] * len(self._workers))

    def parts(self, rows: Sequence[int]) -> list[list[int]]:
        """Return each engine's part of some rows in their order; sizes differ by at most one."""
        return [part.tolist() for part in np.array_split(np.array(rows, dtype=int), len(self._workers))]

    def close(self) -> None:
        """End the processes when their calls are finished."""
        for worker in self._workers:
            worker.close()


@dataclass(frozen=True)
class _Inherited:
    """A file descriptor that a process has as well when it is spawned.

    `DupFd` by itself would pass it on through a socket with a name, which is left behind when this process is killed.
    """

    descriptor: int

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.methodcaller("detach"), (DupFd(self.descriptor),)


def send_as_arrays() -> None:
    """Let connections send tensors as arrays.

    Torch's way takes a quarter of a millisecond each, and leaves a socket behind when this process is killed.
    """
    import torch

    ForkingPickler.register(torch.Tensor, lambda tensor: (torch.from_numpy, (tensor.numpy(),)))


def _serve(
    connection: Connection,
    gpu: str,
    open_one: Callable[..., AnsweringActor],
    arguments: tuple[Any, ...],
    lease: Sequence[int],
) -> None:
    """Open an engine on `gpu` at the first call, and answer calls until the other end of `connection` is closed."""
    # `lease` are the descriptors of `dualread.devices.held`: this process keeps the GPUs while it computes.
    del lease  # open until this process ends
    os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    for name in _LAUNCHED:
        os.environ.pop(name, None)
    work_on(f"GPU {gpu}")
    engine = None
    while True:
        try:
            method, call_arguments = connection.recv()
        except EOFError:
            return
        try:
            engine = engine or open_one(*arguments)
            outcome = getattr(engine, method)(*call_arguments)
        except DualReadError as error:
            outcome = error
        except Exception as error:  # as text, because not every exception can be pickled
            outcome = DualReadError(f"generation: the engine failed: {in_a_line(error)}\n{traceback.format_exc()}")
        connection.send(outcome)

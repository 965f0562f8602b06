"""Several engines of one checkpoint, each in a process of its own on a GPU of its own; requests are dealt out by image.

Not vLLM's data parallelism, which is made for a server and divides no list of requests.
"""

import multiprocessing
import os
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from dualread.errors import DualReadError
from dualread.models.backbones.encode import Encoder
from dualread.models.generation.base import Completion, Decoding, Engine, Request, Weighed
from dualread.progress import work_on


def visible_gpus() -> list[str]:
    """Return the GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    import torch

    n = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",")[:n] if named else [str(i) for i in range(n)]


def by_image(requests: Sequence[Request]) -> list[int]:
    """Return the positions of `requests`, those about one image side by side."""
    return sorted(range(len(requests)), key=lambda i: (requests[i].image_name, i))


def deal(requests: Sequence[Request], n: int) -> list[list[int]]:
    """Return the positions of `requests` in `n` parts of equal size, give or take one; few images are in two parts."""
    return [part.tolist() for part in np.array_split(np.array(by_image(requests), dtype=int), n)]


class DealtEngine:
    """See `dualread.models.generation.base.Engine`.

    Args:
        open_one: Opens the engine of one process; a function of a module.
        arguments: Its arguments.
        gpus: For each process, its CUDA_VISIBLE_DEVICES.
        encoder: Encodes the checkpoint's prompts.
        stop: Ids that end a turn.
    """

    def __init__(
        self,
        open_one: Callable[..., Engine],
        arguments: tuple[Any, ...],
        gpus: Sequence[str],
        encoder: Encoder,
        stop: frozenset[int],
    ):
        self.encoder, self.stop = encoder, stop
        spawn = multiprocessing.get_context("spawn")
        self._workers: list[Connection] = []
        for gpu in gpus:
            ours, theirs = spawn.Pipe()
            # Daemons end with this process; where it is killed, at the next thing that they would tell it.
            spawn.Process(target=_serve, args=(theirs, gpu, open_one, arguments), daemon=True).start()
            theirs.close()
            self._workers.append(ours)

    def generate(self, requests: Sequence[Request], decoding: Decoding) -> list[list[Completion]]:
        """Complete `requests`; see the interface."""
        parts = deal(requests, len(self._workers))
        return self._together("generate", parts, [([requests[i] for i in part], decoding) for part in parts])

    def weigh(self, requests: Sequence[Request], choices: Sequence[Sequence[Sequence[int]]]) -> list[Weighed]:
        """Weigh the `choices` of each request; see the interface."""
        parts = deal(requests, len(self._workers))
        asked = [([requests[i] for i in part], [choices[i] for i in part]) for part in parts]
        return self._together("weigh", parts, asked)

    def _together(self, method: str, parts: Sequence[Sequence[int]], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        for worker, of_worker in zip(self._workers, arguments, strict=True):
            worker.send((method, of_worker))
        results: dict[int, Any] = {}
        for number, (worker, part) in enumerate(zip(self._workers, parts, strict=True)):
            try:
                outcome = worker.recv()
            except EOFError as error:
                raise DualReadError(
                    f"generation: process {number} of {len(parts)} died, perhaps for lack of memory. Run the same"
                    " command again, or lower generation.settings.max_num_seqs."
                ) from error
            if isinstance(outcome, Exception):
                raise outcome
            results.update(zip(part, outcome, strict=True))
        return [results[i] for i in range(len(results))]


def _serve(connection: Connection, gpu: str, open_one: Callable[..., Engine], arguments: tuple[Any, ...]) -> None:
    """Open an engine on `gpu` at the first request, and answer requests until nobody listens."""
    os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    work_on(f"GPU {gpu}")
    engine = None
    while True:
        try:
            method, asked = connection.recv()
        except EOFError:
            return
        try:
            engine = engine or open_one(*arguments)
            outcome = getattr(engine, method)(*asked)
        except DualReadError as error:
            outcome = error
        except Exception:
            outcome = RuntimeError(traceback.format_exc())  # as text: not every exception travels
        connection.send(outcome)

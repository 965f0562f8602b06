"""A service on this machine with OpenAI's chat completions, which behaves as a test says."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


def completion(*texts: str, logprobs: Any = None) -> dict[str, Any]:
    choices = [
        {"index": i, "message": {"content": text}, "finish_reason": "stop", "logprobs": logprobs}
        for i, text in enumerate(texts)
    ]
    return {"choices": choices, "usage": {"prompt_tokens": 5}}


class Fake:
    """A service.

    `behave` gets the number of the call and its body, and returns a response or JSON, after seconds to wait, if any.
    """

    def __init__(self, behave: Callable[[int, dict[str, Any]], Any]) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.times: list[float] = []
        self.behave = behave
        self.address = ""

    async def answer(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.times.append(time.monotonic())
        self.bodies.append(body)
        self.keys.add(request.headers["authorization"])
        said = self.behave(len(self.bodies), body)
        if isinstance(said, tuple):
            seconds, said = said
            await asyncio.sleep(seconds)
        return said if isinstance(said, Response) else JSONResponse(said)


@contextmanager
def running(server: uvicorn.Server, listening: socket.socket) -> Iterator[int]:
    """Run a server in a thread; yield its port."""
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@contextmanager
def serving(behave: Callable[[int, dict[str, Any]], Any]) -> Iterator[Fake]:
    """A running service."""
    fake = Fake(behave)
    app = Starlette(routes=[Route("/v1/chat/completions", fake.answer, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
    with running(server, socket.create_server(("127.0.0.1", 0))) as port:
        fake.address = f"http://127.0.0.1:{port}/v1"
        yield fake

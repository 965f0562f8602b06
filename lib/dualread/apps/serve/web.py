"""What the servers of this program share.

They listen in one way, answer although connections are idle, keep a limited number of bytes of all bodies in memory,
and refuse requests of other sites.
"""

import asyncio
import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping
from ipaddress import ip_address
from types import FrameType
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http import h11_impl

from dualread.errors import ConfigError
from dualread.progress import say

LOOPBACK = "127.0.0.1"
_PORT = re.compile(r":\d{1,5}\Z", re.ASCII)
_SECONDS_FOR_HEAD = 5  # of a request
_SECONDS_FOR_BODY = 60
_SECONDS_TO_TAKE = 60  # what was sent
_SECONDS_TO_CANCEL = 0.5  # requests, when the time for them is over


def is_here(host: str, names: Collection[str] = ()) -> bool:
    """Return whether the header `host` names this machine: by an address, as localhost, or by one of `names`.

    A site that points a name of its own here (DNS rebinding) sends that name, and cannot send an address. Any port, so
    that the server can be reached through `ssh -L`.
    """
    name = _PORT.sub("", host).lower()
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return name in {"localhost", *map(str.lower, names)}
    return True


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address of this machine.

    Raises:
        ConfigError: The port is taken, or not allowed, or this machine has no such address.
    """
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        where = "" if host == LOOPBACK else f"--host {host}, "
        raise ConfigError(
            f"{where}--port {port}: {error.strerror}. Give another one; --port 0 takes a free one."
        ) from error


class WebServer(uvicorn.Server):
    """Ends at a signal when everything is answered, or else when its time is over, whatever the process does then."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end."""
        seconds = float(self.config.timeout_graceful_shutdown or 0) + _SECONDS_TO_CANCEL

        def end() -> None:
            time.sleep(seconds)
            say("stopped before everything was answered: the time for it is over")
            os._exit(1)  # threads that still work would be waited for

        threading.Thread(target=end, daemon=True).start()
        signal.setitimer(signal.ITIMER_REAL, seconds + _SECONDS_TO_CANCEL)  # where code in C lets no thread go on
        super().handle_exit(sig, frame)


def server(app: ASGIApp, *, connections: int, seconds_to_stop: int) -> WebServer:
    """Return a server of `app`; it logs errors alone, and never what was asked."""
    config = uvicorn.Config(
        app,
        http=_Impatient,
        ws="none",
        loop="auto",  # uvloop where it is installed, as in vLLM's environment
        lifespan="off",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=connections,
        timeout_graceful_shutdown=max(0, seconds_to_stop - 1),
    )
    return WebServer(config)


class _Impatient(h11_impl.H11Protocol):
    """Closes a connection on which no whole head of a request arrives, or whose client takes nothing of a reply.

    So idle ones do not keep others out. To watch the connection costs nothing; a timer around each part of a stream
    would cost more than the part.
    """

    _head: asyncio.TimerHandle | None = None
    _full: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._full = self.loop.call_later(_SECONDS_TO_TAKE, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._full = _cancelled(self._full)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._head, self._full = _cancelled(self._head), _cancelled(self._full)

    def _watch(self) -> None:
        if self.conn.their_state is not h11_impl.h11.IDLE:  # type: ignore[reportPrivateImportUsage]
            self._head = _cancelled(self._head)
        elif self._head is None:
            self._head = self.loop.call_later(_SECONDS_FOR_HEAD, self.transport.close)


def _cancelled(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


# Every character beyond ASCII is escaped: some clients take U+2028 for the end of a line. NaN is never written.
encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


class JsonReply(JSONResponse):
    """A reply in JSON that every client can read: ASCII alone, and no NaN."""

    def render(self, content: object) -> bytes:
        """Return the bytes of the reply."""
        return encode(content).encode()


class RefusedError(Exception):
    """A request that is not answered, and why; `body` says it as OpenAI's API does."""

    def __init__(self, status: int, message: str, kind: str = "invalid_request_error", code: str | None = None):
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def reply(self, headers: Mapping[str, str] | None = None) -> JsonReply:
        """Return the reply to the client."""
        return JsonReply(self.body, self.status, headers=headers)


class Bodies:
    """Reads bodies of requests.

    Args:
        most: Bytes of the largest one.
        together: Bytes of all that are being sent or were not released.
        too_large, too_many, too_late: The arguments of `RefusedError` where one is larger, where they are more
            together, and where one does not arrive in time.
    """

    def __init__(
        self,
        most: int,
        together: int,
        *,
        too_large: tuple[Any, ...],
        too_many: tuple[Any, ...],
        too_late: tuple[Any, ...],
    ):
        self._most, self._together, self._n_bytes = most, together, 0
        self._too_large, self._too_many, self._too_late = too_large, too_many, too_late

    async def read(self, request: Request) -> bytes:
        """Return the body of a request; its bytes count until they are released."""
        body = bytearray()
        try:
            async with asyncio.timeout(_SECONDS_FOR_BODY):
                async for part in request.stream():
                    body += part
                    self._n_bytes += len(part)
                    if len(body) > self._most:
                        raise RefusedError(*self._too_large)
                    if self._n_bytes > self._together:
                        raise RefusedError(*self._too_many)
        except BaseException as error:
            self.release(len(body))
            if isinstance(error, TimeoutError):
                raise RefusedError(*self._too_late) from error
            raise
        return bytes(body)

    def release(self, n_bytes: int) -> None:
        """Count so many bytes no longer."""
        self._n_bytes -= n_bytes


class Guarded:
    """An application behind a guard.

    Args:
        app: What answers.
        refusal: Returns the reply to a request that it may not answer; None to let it.
        headers: Returns what is added to the headers of the reply to a request.
    """

    def __init__(
        self, app: ASGIApp, refusal: Callable[[Request], Response | None], headers: Callable[[Scope], Mapping[str, str]]
    ):
        self._app, self._refusal, self._headers = app, refusal, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse one request."""
        headers = [(name.encode(), text.encode()) for name, text in self._headers(scope).items()]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *headers]
            await send(message)

        await (self._refusal(Request(scope)) or self._app)(scope, receive, send_with_headers)

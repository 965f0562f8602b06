"""The server of an application: who may ask it, how long clients may take, and when it ends.

It answers although connections are idle, keeps a limited number of bytes of all bodies in memory, and refuses requests
of other sites.
"""

import asyncio
import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from types import FrameType

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp
from uvicorn.protocols.http import h11_impl

from dualread import limits
from dualread.errors import ConfigError
from dualread.progress import say

LOOPBACK = "127.0.0.1"
_PORT = re.compile(r":\d{1,5}\Z", re.ASCII)
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
        self._full = self.loop.call_later(limits.SECONDS_TO_TAKE, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop("_full")

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop("_head")
        self._stop("_full")

    def _watch(self) -> None:
        if self.conn.their_state is not h11_impl.h11.IDLE:  # type: ignore[reportPrivateImportUsage]
            self._stop("_head")
        elif self._head is None:
            self._head = self.loop.call_later(limits.SECONDS_FOR_HEAD, self.transport.close)

    def _stop(self, timer: str) -> None:
        if (running := getattr(self, timer)) is not None:
            running.cancel()
            setattr(self, timer, None)


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
        megabytes: Of the largest one; those that are being sent or were not released may have eight times as many.
    """

    def __init__(self, megabytes: int):
        self._megabytes, self._n_bytes = megabytes, 0

    async def read(self, request: Request) -> bytes:
        """Return the body of a request; its bytes count until they are released.

        Raises:
            RefusedError: It is too large, or does not arrive in time, or too much is being sent at once.
        """
        body, most = bytearray(), self._megabytes * 1_000_000
        try:
            async with asyncio.timeout(limits.SECONDS_FOR_BODY):
                async for part in request.stream():
                    body += part
                    self._n_bytes += len(part)
                    if len(body) > most:
                        raise RefusedError(413, f"the request has more than {self._megabytes} MB. Shrink its images.")
                    if self._n_bytes > limits.BODIES * most:
                        raise RefusedError(429, "too much is being sent at once. Ask again later.", "rate_limit_error")
        except BaseException as error:
            self.release(len(body))
            if isinstance(error, TimeoutError):
                raise RefusedError(408, "the request did not arrive in time. Ask again.") from error
            raise
        return bytes(body)

    def release(self, n_bytes: int) -> None:
        """Count so many bytes no longer."""
        self._n_bytes -= n_bytes

"""The server of an application: who may ask it, how long clients may take, and when it ends."""

import asyncio
import json
import os
import re
import signal
import socket
import threading
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from types import FrameType

import uvicorn
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
    """Return a socket that listens at an address of this machine, or raise a ConfigError that says why not."""
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
            say("stopped before everything was answered: the time for it is over")
            os._exit(1)  # threads that still work would be waited for

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
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

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._timers["reply"] = self.loop.call_later(limits.SECONDS_TO_TAKE, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop("reply")

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop("head")
        self._stop("reply")

    def _watch(self) -> None:
        if self.conn.their_state is not h11_impl.h11.IDLE:  # type: ignore[reportPrivateImportUsage]
            self._stop("head")
        elif "head" not in self._timers:
            self._timers["head"] = self.loop.call_later(limits.SECONDS_FOR_HEAD, self.transport.close)

    def _stop(self, timer: str) -> None:
        if timer in self._timers:
            self._timers.pop(timer).cancel()


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

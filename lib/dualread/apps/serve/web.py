"""What the servers of this program share: a socket, and a server that idle connections do not keep from answering."""

import asyncio
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Collection
from ipaddress import ip_address
from types import FrameType

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http import h11_impl

from dualread.errors import ConfigError
from dualread.progress import say

LOOPBACK = "127.0.0.1"
_PORT = re.compile(r":\d{1,5}\Z", re.ASCII)
_SECONDS_FOR_HEAD = 5  # of a request
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
        threading.Thread(target=_end_after, args=(seconds,), daemon=True).start()
        signal.setitimer(signal.ITIMER_REAL, seconds + _SECONDS_TO_CANCEL)  # where code in C lets no thread go on
        super().handle_exit(sig, frame)


def _end_after(seconds: float) -> None:
    time.sleep(seconds)
    say("stopped before everything was answered: the time for it is over")
    os._exit(1)  # threads that still work would be waited for


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

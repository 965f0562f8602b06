"""What the servers of this program share: a socket, and a server that idle connections do not keep from answering."""

import asyncio
import re
import socket

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http import h11_impl

from dualread.errors import ConfigError

LOOPBACK = "127.0.0.1"
# The names of this machine under which a server here may be asked. A site that points a name of its own here (DNS
# rebinding) sends that name. Any port, so that the server can be reached through `ssh -L`.
_HERE = re.compile(rf"(?:{re.escape(LOOPBACK)}|localhost)(?::\d+)?")
_SECONDS_FOR_HEAD = 5  # of a request
_SECONDS_TO_TAKE = 60  # what was sent


def is_here(host: str) -> bool:
    """Return whether the header `host` names this machine."""
    return bool(_HERE.fullmatch(host))


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


def server(app: ASGIApp, *, connections: int, seconds_to_stop: int) -> uvicorn.Server:
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
        timeout_graceful_shutdown=seconds_to_stop,
    )
    return uvicorn.Server(config)


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

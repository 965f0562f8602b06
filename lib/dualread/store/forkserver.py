"""The processes that import the heavy packages once and fork one child per job (`forked` asks them for it).

`layers` starts this file as a program, with a plan on its standard input. It imports packages and nothing of dualread:
every child imports the library afresh, so that the code of a result is the code of its key. Each layer of packages has
a process of its own, forked from the one before it.

They end with Snakemake's process, which holds the other end of standard input open. A child dies with the process that
forked it. The sockets have names in memory only (Linux's abstract names), so nothing can be left behind on a disk.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import mmap
import os
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

# What shells and Snakemake set per job, and no package reads when it is imported.
_PER_JOB = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "TMPDIR", "TMP", "TEMPDIR", "TEMP"})
_REQUEST_SECONDS = 10.0
_MOST_BYTES = 2**22  # of a request: its environment may have 2 MB in Linux
_PATIENCE_SECONDS = 10.0
_PDEATHSIG = 1  # of prctl(2)
_LIBC = ctypes.CDLL(None)
_ENVIRONMENT = dict(os.environ)  # before packages add to it
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_SAID = mmap.mmap(-1, 1)  # shared by all these processes


@dataclass(frozen=True, kw_only=True)
class ForkedJob:
    """What `forked` asks for: a call of `dualread.store.run`, and where."""

    arguments: list[str]
    folder: str
    environment: dict[str, str]
    streams: list[int]  # standard input, output, and error

    def run(self) -> None:
        """Do what `python -m dualread.store.run` does, and exit as it does; only in a child."""
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        for number, stream in enumerate(self.streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(self.folder)
        os.environ.update(self.environment)
        tempfile.tempdir = None  # a package may have looked it up
        sys.argv = ["", *self.arguments]
        gc.enable()
        runpy.run_module("dualread.store.run", run_name="__main__", alter_sys=True)


class Server:
    """Forks jobs for those who connect to `listeners`, until Snakemake's process ends."""

    def __init__(self, listeners: Iterable[socket.socket]) -> None:
        self._selector = selectors.DefaultSelector()
        self._children: dict[int, tuple[int, socket.socket]] = {}  # {pidfd: (process, connection)}
        self._requests: dict[socket.socket, _PartialRequest] = {}  # that are not complete
        self._deadline: float | None = None  # set when Snakemake's process has ended
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ, self._end)
        self._listeners = list(listeners)
        for listener in self._listeners:
            self._selector.register(listener, selectors.EVENT_READ, self._accept)

    def serve(self) -> ForkedJob | None:
        """Return None when Snakemake's process and all children have ended; in each child, return its job."""
        while self._deadline is None or self._children:
            ends = [request.deadline for request in self._requests.values()]
            ends += [] if self._deadline is None else [self._deadline]
            events = self._selector.select(max(0.0, min(ends) - time.monotonic()) if ends else None)
            now = time.monotonic()
            if not events and self._deadline is not None and now >= self._deadline:
                self._kill_all(signal.SIGKILL)  # a child does not end when it is asked to
            for late in [number for number, request in self._requests.items() if now >= request.deadline]:
                self._drop(late)
            # The end of Snakemake's process comes first: no job is accepted after it.
            for key, _ in sorted(events, key=lambda event: event[0].fileobj != sys.stdin.fileno()):
                if self._selector.get_map().get(key.fd) == key and (job := key.data(key.fileobj)):
                    return job
        return None

    def _accept(self, listener: socket.socket) -> None:
        """Take a connection; nothing is read of another user's, and nobody is waited for."""
        try:
            connection, _ = listener.accept()
        except OSError:  # it has gone, or too many files are open
            return
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)  # process, user, group
        if int.from_bytes(credentials[4:8], sys.byteorder) != os.getuid():
            connection.close()
            return
        connection.setblocking(False)
        self._requests[connection] = _PartialRequest(connection)
        self._selector.register(connection, selectors.EVENT_READ, self._receive)

    def _receive(self, connection: socket.socket) -> ForkedJob | None:
        request = self._requests[connection]
        try:
            job = request.read()
        except BlockingIOError:
            return None
        except (OSError, ValueError, TypeError, RecursionError):
            self._drop(connection)
            return None
        if job is None:
            return None
        now, names = job.environment, (job.environment.keys() | _ENVIRONMENT.keys()) - _PER_JOB
        if different := sorted(name for name in names if now.get(name) != _ENVIRONMENT.get(name)):
            _say_once(f"these variables are not what they were when the run began: {', '.join(different)}")
            self._drop(connection)
            return None
        self._selector.unregister(connection)
        del self._requests[connection]
        connection.setblocking(True)
        return self._start(job, connection)

    def _drop(self, connection: socket.socket) -> None:
        """Close a connection; whoever asked runs the job."""
        self._selector.unregister(connection)
        self._requests.pop(connection).close()
        connection.close()

    def _start(self, job: ForkedJob, connection: socket.socket) -> ForkedJob | None:
        """Fork a child for a job; return the job in the child."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # the child takes them when it has handlers
        try:
            if (process := _fork()) == 0:
                self._forget()
                connection.close()
                return job
            self._watch(process, connection)
        except OSError:  # no memory, or too many processes
            connection.close()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        for stream in job.streams:
            os.close(stream)
        return None

    def _watch(self, process: int, connection: socket.socket) -> None:
        child = os.pidfd_open(process)
        self._children[child] = (process, connection)
        self._selector.register(child, selectors.EVENT_READ, self._reap)
        self._selector.register(connection, selectors.EVENT_READ, lambda _: self._signal(child))
        with contextlib.suppress(OSError):
            connection.sendall(b"+")

    def _signal(self, child: int) -> None:
        """Pass on signals. Whoever asked for the job and is no more was killed, and so is the child then."""
        connection = self._children[child][1]
        try:
            numbers = connection.recv(64)
        except OSError:
            numbers = b""
        if not numbers:
            self._selector.unregister(connection)
        for number in numbers or [signal.SIGKILL]:
            signal.pidfd_send_signal(child, number)

    def _reap(self, child: int) -> None:
        process, connection = self._children.pop(child)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        self._selector.unregister(child)
        with contextlib.suppress(KeyError):  # closed by the other side
            self._selector.unregister(connection)
        with contextlib.suppress(OSError):
            connection.sendall(str(code).encode())
        os.close(child)
        connection.close()

    def _end(self, stdin: int) -> None:
        self._deadline = time.monotonic() + _PATIENCE_SECONDS
        self._selector.unregister(stdin)
        for listener in self._listeners:
            self._selector.unregister(listener)
            listener.close()
        for connection in list(self._requests):
            self._drop(connection)
        self._kill_all(signal.SIGTERM)

    def _kill_all(self, number: int) -> None:
        for child in self._children:
            signal.pidfd_send_signal(child, number)

    def _forget(self) -> None:
        """Close all that belongs to the server, in a child of it."""
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        for request in self._requests.values():
            request.close()
        for child in self._children:
            os.close(child)
        self._selector.close()


class _PartialRequest:
    """A request that comes in pieces: the length of a job's text with its streams, then the text."""

    def __init__(self, connection: socket.socket) -> None:
        self.deadline = time.monotonic() + _REQUEST_SECONDS
        self.streams: list[int] = []
        self._connection, self._size, self._text = connection, -1, b""

    def read(self) -> ForkedJob | None:
        """Read what is there; return the job when it is complete.

        Signals behind the request stay unread.

        Raises:
            OSError: The connection is broken.
            ValueError: It is no request.
            TypeError: It is none.
        """
        if self._size < 0:
            size, streams, _, _ = socket.recv_fds(self._connection, 4, 3)
            self.streams += streams
            self._size = int.from_bytes(size)
            if len(size) < 4 or not 0 < self._size <= _MOST_BYTES:
                raise ValueError(f"a request of {self._size} bytes")
            return None
        more = self._connection.recv(self._size - len(self._text))
        self._text += more
        if not more:
            raise ValueError("a request that ends early")
        return (
            ForkedJob(streams=list(self.streams), **json.loads(self._text)) if len(self._text) == self._size else None
        )

    def close(self) -> None:
        """Close the streams."""
        for stream in self.streams:
            os.close(stream)


def _say_once(reason: str) -> None:
    if not _SAID[0]:
        _SAID[0] = 1
        print(f"jobs are not forked, and each imports its packages: {reason}", file=sys.stderr, flush=True)


def distributions(folder: str) -> list[str]:
    """Return the names, which contain versions, of the distributions that are installed in a folder of sys.path."""
    with contextlib.suppress(OSError):
        return sorted(name for name in os.listdir(folder or ".") if name.endswith((".dist-info", ".egg-info")))
    return []


def _fork() -> int:
    """Fork a child that dies when this process does."""
    parent = os.getpid()
    with warnings.catch_warnings():
        # Python 3.12 and later warn of other threads. Those here are started by polars and pyarrow when they are
        # imported: jemalloc's, which are made for forks, and one that removes polars' temporary files.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        return process
    _LIBC.prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    return 0


def _import(names: Iterable[str]) -> None:
    """Import modules, and what `from package import name` would load of a package that loads its parts on demand."""
    for name in names:
        package, _, part = name.rpartition(".")
        with contextlib.suppress(Exception):  # a job that needs it will say what is wrong
            try:
                importlib.import_module(name)
            except ModuleNotFoundError:
                getattr(importlib.import_module(package), part)


def _serve(layers: list[dict], planned: dict[str, list[str]]) -> ForkedJob | None:
    """Import the layers, each in a process of its own, and serve its stages; return a job in each child."""
    listeners = [[socket.socket(fileno=number) for number in layer["listeners"]] for layer in layers]
    next_layer = 0
    for layer in layers:
        layer_listeners = listeners.pop(0)
        _import(layer["modules"])
        gc.freeze()  # so that a collection in a child does not copy every page
        if not listeners or (next_layer := _fork()):
            break
        for listener in layer_listeners:
            listener.close()
    for listener in (listener for layer in listeners for listener in layer):
        listener.close()
    if {folder: distributions(folder) for folder in planned} != planned:
        # What was imported may be of other versions than the keys of results will say.
        _say_once("packages were installed or removed after the run had been planned")
        for listener in layer_listeners:
            listener.close()
        layer_listeners = []
    job = Server(layer_listeners).serve()
    if job is None and next_layer:
        os.waitpid(next_layer, 0)
    return job


def main() -> None:
    """Serve the plan on standard input: the distributions that were installed, and the layers (see `layers`)."""
    plan = json.loads(sys.stdin.readline())
    for number in _SIGNALS:  # sent to a whole group, they are for the jobs; `forked` passes them on
        signal.signal(number, signal.SIG_IGN)
    gc.disable()
    code = 0
    if job := _serve(plan["layers"], plan["distributions"]):
        try:
            job.run()
        except SystemExit as end:
            code = end.code
            if not isinstance(code, int):  # Python knows what to do with it
                raise
    # Not as usual: to free all that the packages made, one by one, takes a child up to half a second.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()

"""The processes that import the heavy packages once and fork one child per job (`forked` asks them for it).

`layers` starts this file as a program, with a plan on its standard input. It imports packages and nothing of dualread:
every child imports the library afresh, so that the code of a result is the code of its key. A job stops if a package
was replaced since the run was planned (`runner.check_plan`), so those that were imported here are the right ones. Each
layer of packages has a process of its own, forked from the one before it.

They end with Snakemake's process, which holds the other end of standard input open. A child dies with the process that
forked it. The sockets have names in memory only (Linux's abstract names), so nothing can be left behind on a disk.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

# What shells and Snakemake set per job, and no package reads when it is imported.
_PER_JOB = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "TMPDIR", "TMP", "TEMPDIR", "TEMP"})
_MOST_BYTES = 2**22  # of a request: its environment may have 2 MB in Linux
_PATIENCE_SECONDS = 10.0
_PDEATHSIG = 1  # of prctl(2)
_LIBC = ctypes.CDLL(None)
_ENVIRONMENT = dict(os.environ)  # before packages add to it
# Blocked in the servers: sent to a whole group, they are for the jobs, and `forked` passes them on. A child takes them
# when it has handlers.
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


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
        self._is_ending = self._has_warned = False
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ, self._end)
        for listener in listeners:
            self._selector.register(listener, selectors.EVENT_READ, self._accept)

    def serve(self) -> ForkedJob | None:
        """Return None when Snakemake's process and all children have ended; in each child, return its job."""
        while not self._is_ending or self._children:
            events = self._selector.select(_PATIENCE_SECONDS if self._is_ending else None)
            if not events:
                self._kill_all(signal.SIGKILL)  # a child does not end when it is asked to
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
        if int.from_bytes(credentials[4:8], sys.byteorder) == os.getuid():
            self._selector.register(connection, selectors.EVENT_READ, self._receive)
        else:
            connection.close()

    def _receive(self, connection: socket.socket) -> ForkedJob | None:
        """Fork a child for a job, and return the job in the child; without a child, whoever asked runs the job."""
        self._selector.unregister(connection)
        descriptors: list[int] = []  # of the streams, and of the file with all else, which come in one piece
        try:
            _, descriptors, _, _ = socket.recv_fds(connection, 1, 4)
            with open(descriptors.pop(), "rb") as request:
                text = os.pread(request.fileno(), _MOST_BYTES, 0)
            job = ForkedJob(streams=descriptors, **json.loads(text))
            if not self._has_environment(job):
                connection.close()
            elif self._start(connection):
                return job
        except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
            connection.close()  # no request; or no memory, or too many processes
        _close(descriptors)
        return None

    def _start(self, connection: socket.socket) -> bool:
        """Fork a child for a job; return whether this is the child."""
        if (process := _fork()) == 0:
            for key in list(self._selector.get_map().values()):  # all that belongs to the server
                if isinstance(key.fileobj, socket.socket):
                    key.fileobj.close()
            for child in self._children:
                os.close(child)
            self._selector.close()
            connection.close()
            return True
        child = os.pidfd_open(process)
        self._children[child] = (process, connection)
        self._selector.register(child, selectors.EVENT_READ, self._reap)
        self._selector.register(connection, selectors.EVENT_READ, lambda _: self._signal(child))
        with contextlib.suppress(OSError):
            connection.sendall(b"+")
        return False

    def _has_environment(self, job: ForkedJob) -> bool:
        """Return whether packages that are imported here are as the job would have them; say once if not."""
        names = (job.environment.keys() | _ENVIRONMENT.keys()) - _PER_JOB
        different = sorted(name for name in names if job.environment.get(name) != _ENVIRONMENT.get(name))
        if different and not self._has_warned:
            self._has_warned = True
            reason = f"these variables are not what they were when the run began: {', '.join(different)}"
            print(f"jobs are not forked, and each imports its packages: {reason}", file=sys.stderr, flush=True)
        return not different

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
        """Accept nothing more, and end the children."""
        self._is_ending = True
        self._selector.unregister(stdin)
        watched = [connection for _, connection in self._children.values()]
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket) and key.fileobj not in watched:
                self._selector.unregister(key.fileobj)
                key.fileobj.close()
        self._kill_all(signal.SIGTERM)

    def _kill_all(self, number: int) -> None:
        for child in self._children:
            signal.pidfd_send_signal(child, number)


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


def _serve(layers: list[dict]) -> ForkedJob | None:
    """Import the layers, each in a process of its own, and serve its stages; return a job in each child."""
    n, next_layer = 0, 0
    for n, layer in enumerate(layers, start=1):
        _import(layer["modules"])
        gc.freeze()  # so that a collection in a child does not copy every page
        if n == len(layers) or (next_layer := _fork()):
            break
        _close(layer["listeners"])
    for layer in layers[n:]:
        _close(layer["listeners"])
    job = Server([socket.socket(fileno=number) for number in layers[n - 1]["listeners"]]).serve()
    if job is None and next_layer:
        os.waitpid(next_layer, 0)
    return job


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def main() -> None:
    """Serve the plan on standard input: the layers (see `layers`)."""
    layers = json.loads(sys.stdin.readline())
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    gc.disable()
    code = 0
    if job := _serve(layers):
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

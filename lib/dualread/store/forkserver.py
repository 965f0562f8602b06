"""The processes that import the heavy packages once and fork the jobs (`forked` asks them for it).

`layers` starts this file as a program, with a plan on its standard input. It imports packages and nothing of dualread:
every child imports the library afresh, so that the code of a result is the code of its key. A job stops if a package
was replaced since the run was planned (`runner.check_plan`), so those that were imported here are the right ones. Each
layer of packages has a process of its own, forked from the one before it. It forks one process per job, which forks the
job, passes signals on to it, and tells how it ended.

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
import select
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
_HAS_WARNED = mmap.mmap(-1, 1)  # which all processes share
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


def _watched(connection: socket.socket) -> ForkedJob:
    """Fork the job that somebody asks for, and return it there; here, pass on signals and tell how it ended, and end.

    Without a job, whoever asked runs it. Whoever asked and is no more was killed, and so is the job then.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    process, descriptors = -1, []  # of the streams, and of the file with all else, which come in one piece
    try:
        connection.settimeout(_PATIENCE_SECONDS)
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 4)
        with open(descriptors.pop(), "rb") as request:
            text = os.pread(request.fileno(), _MOST_BYTES, 0)
        job = ForkedJob(streams=descriptors, **json.loads(text))
        if _has_environment(job) and (process := _fork()) == 0:
            connection.close()
            return job
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        pass  # no request
    if process > 0:
        _close(descriptors)
        code = _ended(process, connection)
        with contextlib.suppress(OSError):  # closed by the other side
            connection.sendall(str(code).encode())
    os._exit(0)


def _ended(process: int, connection: socket.socket) -> int:
    """Pass signals on until a job ends, which is asked to when Snakemake's process has; return its exit code."""
    job, watched, patience = os.pidfd_open(process), {connection, sys.stdin}, None
    with contextlib.suppress(OSError):
        connection.sendall(b"+")
    while job not in (ready := select.select([job, *watched], [], [], patience)[0]):
        numbers = [] if ready else [signal.SIGKILL]  # it does not end when it is asked to
        if connection in ready:
            try:
                numbers = list(connection.recv(64))
            except OSError:
                numbers = []
            if not numbers:
                watched.discard(connection)
                numbers = [signal.SIGKILL]
        if sys.stdin in ready:
            watched.discard(sys.stdin)
            numbers, patience = [*numbers, signal.SIGTERM], _PATIENCE_SECONDS
        for number in numbers:
            signal.pidfd_send_signal(job, number)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _has_environment(job: ForkedJob) -> bool:
    """Return whether packages that are imported here are as the job would have them; say once if not."""
    names = (job.environment.keys() | _ENVIRONMENT.keys()) - _PER_JOB
    different = sorted(name for name in names if job.environment.get(name) != _ENVIRONMENT.get(name))
    if different and not _HAS_WARNED[0]:
        _HAS_WARNED[0] = 1
        reason = f"these variables are not what they were when the run began: {', '.join(different)}"
        print(f"jobs are not forked, and each imports its packages: {reason}", file=sys.stderr, flush=True)
    return not different


def _fork() -> int:
    """Fork a child that dies when this process does; return -1 where there is no memory, or too many processes."""
    parent = os.getpid()
    with warnings.catch_warnings():
        # Python 3.12 and later warn of other threads. Those here are started by polars and pyarrow when they are
        # imported: jemalloc's, which are made for forks, and one that removes polars' temporary files.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            process = os.fork()
        except OSError:
            process = -1
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
    """Import the layers, each in a process of its own, and serve its stages; return a job in its process.

    Return None when Snakemake's process and all children have ended.
    """
    n = 0
    for n, layer in enumerate(layers, start=1):
        _import(layer["modules"])
        gc.freeze()  # so that a collection in a child does not copy every page
        if n == len(layers) or _fork():
            break
        _close(layer["listeners"])
    for layer in layers[n:]:
        _close(layer["listeners"])
    listeners = [socket.socket(fileno=number) for number in layers[n - 1]["listeners"]]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children leave nothing behind, and `wait` waits for all of them
    # The end of Snakemake's process comes first: no job is accepted after it.
    while sys.stdin not in (ready := select.select([sys.stdin, *listeners], [], [])[0]):
        for listener in (each for each in listeners if each in ready):
            try:
                connection, _ = listener.accept()
            except OSError:  # it has gone, or too many files are open
                continue
            # Nothing is read of another user's, and nobody is waited for.
            user = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8]
            if int.from_bytes(user, sys.byteorder) == os.getuid() and _fork() == 0:
                for other in listeners:
                    other.close()
                return _watched(connection)
            connection.close()
    for listener in listeners:
        listener.close()
    with contextlib.suppress(ChildProcessError):
        os.wait()
    return None


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

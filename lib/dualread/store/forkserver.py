"""The processes that import the heavy packages once and fork the jobs (`forked` asks them for it).

`layers` starts this file as a program, with a plan on its standard input. It imports packages and nothing of dualread:
every child imports the library afresh, so that the code of a result is the code of its key. A job stops if a package
was replaced since the run was planned (`runner.check_plan`), so those that were imported here are the right ones. Each
layer of packages has a process of its own, forked from the one before it, which forks the jobs of its stages, passes
signals on to them, and tells how they end.

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
import resource
import select
import signal
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterable

# What shells and Snakemake set per job, and no package reads when it is imported.
_PER_JOB = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "TMPDIR", "TMP", "TEMPDIR", "TEMP"})
_MOST_BYTES = 2**22  # of a request: its environment may have 2 MB in Linux
_PATIENCE_SECONDS = 10.0
_PDEATHSIG = 1  # of prctl(2)
# The highest number that a connection may have: `select` knows 1024 files, a limit may be lower, and to fork a job
# takes five more.
_MOST_FILES = min(1024, resource.getrlimit(resource.RLIMIT_NOFILE)[0]) - 6
_LIBC = ctypes.CDLL(None)
_ENVIRONMENT = dict(os.environ)  # before packages add to it
_HAS_WARNED = mmap.mmap(-1, 1)  # which all processes share
# Blocked in the servers: sent to a whole group, they are for the jobs, and `forked` passes them on. A child takes them
# when it has handlers.
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_Jobs = dict[int, tuple[int, socket.socket]]  # by a descriptor of its process: the process, and who asked for the job


def _run(streams: list[int], arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Do what `python -m dualread.store.run` does with these `arguments`, and exit as it does; only in a child."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.update(environment)
    tempfile.tempdir = None  # a package may have looked it up
    sys.argv = ["", *arguments]
    gc.enable()
    from dualread.store.run import main

    try:
        code = main(arguments)
    except SystemExit as end:
        code = end.code
        if not isinstance(code, int):  # Python knows what to do with it
            raise
    # Not as usual: to free all that the packages made, one by one, takes a child up to half a second.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _serve(listeners: list[socket.socket]) -> None:
    """Fork the jobs that are asked for until Snakemake's process ends; then end those that run."""
    asking: list[socket.socket] = []  # of whom nothing has come yet: nobody is waited for
    jobs: _Jobs = {}
    # The end of Snakemake's process comes first: no job is accepted after it.
    while sys.stdin not in (ready := _ready([sys.stdin, *listeners, *asking], jobs)):
        for listener in (each for each in listeners if each in ready):
            with contextlib.suppress(OSError):  # it has gone, or too many files are open
                connection, _ = listener.accept()
                user = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8]
                is_ours = int.from_bytes(user, sys.byteorder) == os.getuid()  # nothing is read of another user's
                has_room = connection.fileno() <= _MOST_FILES
                asking.append(connection) if is_ours and has_room else connection.close()
        for connection in (each for each in [*asking] if each in ready):
            asking.remove(connection)
            _fork_job(connection, jobs, [*listeners, *asking])
    for connection in (*listeners, *asking):
        connection.close()
    number = signal.SIGTERM
    while jobs:
        for job in jobs:
            signal.pidfd_send_signal(job, number)
        while jobs and _ready([], jobs, _PATIENCE_SECONDS):
            pass
        number = signal.SIGKILL  # for those that do not end when they are asked to


def _ready(others: list, jobs: _Jobs, patience: float | None = None) -> list:
    """Return what of `others` is ready; pass signals on to `jobs`, and tell how they end.

    Whoever asked for a job and is no more was killed, and so is the job then.
    """
    asked_by = {connection: job for job, (_, connection) in jobs.items() if connection.fileno() >= 0}
    ready = select.select([*others, *asked_by, *jobs], [], [], patience)[0]
    for connection in asked_by.keys() & ready:
        try:
            numbers = connection.recv(64)
        except OSError:
            numbers = b""
        for number in numbers or [signal.SIGKILL]:
            with contextlib.suppress(OSError):  # no signal has this number
                signal.pidfd_send_signal(asked_by[connection], number)
        if not numbers:
            connection.close()
    for job in jobs.keys() & ready:
        process, connection = jobs.pop(job)
        os.close(job)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        with contextlib.suppress(OSError), connection:  # closed by the other side
            connection.sendall(str(code).encode())
    return ready


def _fork_job(connection: socket.socket, jobs: _Jobs, others: list[socket.socket]) -> None:
    """Fork the job that somebody asks for; whoever asked without an answer runs it."""
    process, descriptors, call = -1, [], ()  # of the streams, and of the file with all else, which come in one piece
    with contextlib.suppress(OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):  # no request
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 4)
        with open(descriptors.pop(), "rb") as request:
            asked = json.loads(os.pread(request.fileno(), _MOST_BYTES, 0))
        call = asked["arguments"], asked["folder"], asked["environment"]
        process = _fork() if _has_environment(asked["environment"]) else -1
    if process == 0:
        for other in (connection, *others, *(asked_by for _, asked_by in jobs.values())):
            other.close()
        _run(descriptors, *call)
    _close(descriptors)
    if process < 0:
        connection.close()
        return
    jobs[os.pidfd_open(process)] = process, connection
    with contextlib.suppress(OSError):
        connection.sendall(b"+")


def _has_environment(environment: dict[str, str]) -> bool:
    """Return whether packages that are imported here are as a job would have them; say once if not."""
    names = (environment.keys() | _ENVIRONMENT.keys()) - _PER_JOB
    different = sorted(name for name in names if environment.get(name) != _ENVIRONMENT.get(name))
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


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def main() -> None:
    """Serve the plan on standard input: import the layers (see `layers`), each in a process of its own."""
    layers = json.loads(sys.stdin.readline())
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    gc.disable()
    n = 0
    for n, layer in enumerate(layers, start=1):
        _import(layer["modules"])
        gc.freeze()  # so that a collection in a child does not copy every page
        if n == len(layers) or _fork():
            break
        _close(layer["listeners"])
    for layer in layers[n:]:
        _close(layer["listeners"])
    _serve([socket.socket(fileno=number) for number in layers[n - 1]["listeners"]])
    with contextlib.suppress(ChildProcessError):
        os.wait()  # for the next layer
    os._exit(0)


if __name__ == "__main__":
    main()

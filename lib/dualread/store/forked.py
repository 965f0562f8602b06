"""Have a job forked by `forkserver`, so that it need not import its packages.

This process then stands for the job: it passes on its own standard streams, folder, environment, and the signals that
it gets, and it ends as the job ends. It has imported nothing that takes time.
"""

import contextlib
import json
import os
import signal
import socket
import sys
from types import FrameType

ADDRESS = "DUALREAD_FORKSERVER"
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def stand_for_job(arguments: list[str]) -> None:
    """Have the job with these arguments of `dualread.store.run` forked, and exit as it does.

    Return if nobody forks it, or if the server is killed while it runs: then this process runs it, unless Snakemake has
    ended.
    """
    if not (address := os.environ.get(ADDRESS)) or not arguments or sys.platform != "linux":
        return
    code = _code_of_forked(address, arguments)
    if code is None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as head:
            # Snakemake's process, which started the servers, holds a socket of this name until it ends.
            if head.connect_ex(f"\0{address}"):
                sys.exit(f"[{arguments[0]}] Snakemake has ended; this job is not run")
        return
    _note_end(arguments, code)
    if code < 0:  # end by the signal that ended the job
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


def _note_end(arguments: list[str], code: int) -> None:
    """Say in the job's log how it ended, if it could not say so itself."""
    if code in (0, 130) or "--log" not in arguments[:-1]:
        return
    number = -code if code < 0 else code - 128
    by_signal = number in signal.valid_signals() and number > 0
    how = f"by {signal.Signals(number).name}" if by_signal else f"with exit code {code}"
    with contextlib.suppress(OSError), open(arguments[arguments.index("--log") + 1], "a", encoding="utf-8") as log:
        log.write(f"[{arguments[0]}] ended {how}\n")


def _code_of_forked(address: str, arguments: list[str]) -> int | None:
    """Return the exit code of the forked job, negative for a signal; None if there is none."""
    received: list[int] = []
    with socket.socket(socket.AF_UNIX) as server, open(os.memfd_create("job"), "w+") as request:
        json.dump({"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}, request)
        request.flush()
        try:
            server.connect(f"\0{address}/{arguments[0]}")
            credentials = server.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)  # process, user, group
            if int.from_bytes(credentials[4:8], sys.byteorder) != os.getuid():
                return None
            _forward_signals(server, received)
            socket.send_fds(server, [b"+"], [0, 1, 2, request.fileno()])
            answer = server.recv(1)
            code = server.recv(16) if answer else b""
        except OSError:  # no server, or none any more
            answer = code = b""
    if code:
        return int(code)
    for number in (*_FORWARDED, signal.SIGTSTP):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    if received:  # the server ended before it could pass the signal on: the same signal may have ended both
        return -received[0]
    if answer:
        message = "the process that had forked this job was killed; the job starts again"
        print(f"[{arguments[0]}] {message}", file=sys.stderr, flush=True)
    return None


def _forward_signals(server: socket.socket, received: list[int]) -> None:
    """Pass signals on to the job, and append to `received` those that are to end it."""
    # The job is in a process group of its own, so that a signal to the group of this process reaches it once.

    def forward(number: int) -> None:
        with contextlib.suppress(OSError):  # the job has just ended; its exit code is still to be read
            server.sendall(bytes([number]))

    def end(number: int, frame: FrameType | None) -> None:
        received.append(number)
        forward(number)

    def stop(number: int, frame: FrameType | None) -> None:
        forward(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        forward(signal.SIGCONT)

    for number in _FORWARDED:
        signal.signal(number, end)
    signal.signal(signal.SIGTSTP, stop)

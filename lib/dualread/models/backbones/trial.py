"""Run code of others, such as a chat template, in bounded time and memory.

`trouble` tries it in a child process first, and `within_limits` bounds each later call, because code that ends for one
text need not end for another. There, only time is bounded: a limit on the memory of this process would hold for what
its other threads do, too.
"""

import os
import resource
import select
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dualread import limits

_WAITS = 20  # times as long is waited for it on the clock
_PAGES = Path("/proc/self/statm")  # Linux; elsewhere memory is not bounded, but time is


def trouble(action: Callable[[], object]) -> str | None:
    """Return why `action` must not be called here, in a few words; None if it ends, be it with an error.

    It is called in a fork of this process, which is bounded, and whose results are lost.
    """
    receiver, sender = os.pipe()
    ready, outcome = [], b""
    child = _fork()
    if child == 0:
        os.close(receiver)
        _run(action, sender)
    os.close(sender)
    try:
        ready, _, _ = select.select([receiver], [], [], _WAITS * limits.TEMPLATE_SECONDS)
        outcome = os.read(receiver, 1) if ready else b""
    finally:
        os.close(receiver)
        os.kill(child, signal.SIGKILL)  # one that has ended keeps the reason why
        _, status = os.waitpid(child, 0)
    if outcome == b"+":
        return None
    if outcome == b"m":
        return f"takes more than {limits.TEMPLATE_BYTES / 1e9:.0f} GB of memory"
    ended = ready and not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGVTALRM)
    return "ends its process" if ended else f"does not end within {limits.TEMPLATE_SECONDS:.0f} seconds"


class LimitError(Exception):
    """Code of others took more than it may."""


@contextmanager
def within_limits() -> Iterator[None]:
    """Bound the CPU time of this process inside to `limits.TEMPLATE_SECONDS`; waiting does not count.

    Signals reach the main thread alone. In others, such as those of the demo, nothing is bounded.

    Raises:
        LimitError: It takes longer, or more memory than there is.
    """

    def stop(*_: Any) -> None:
        raise LimitError(f"does not end within {limits.TEMPLATE_SECONDS:.0f} seconds")

    try:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGVTALRM, stop)
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, limits.TEMPLATE_SECONDS)
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)
    except MemoryError as error:
        raise LimitError("takes more memory than there is") from error


def _fork() -> int:
    # Otherwise the package tokenizers complains in the child, which does not use it.
    before = os.environ.get(name := "TOKENIZERS_PARALLELISM")
    os.environ[name] = before or "true"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the child does not touch what other threads hold
            return os.fork()
    finally:
        if before is None:
            del os.environ[name]


def _run(action: Callable[[], object], sender: int) -> None:
    """Call `action`, say how it ended, and end this process, which is the child."""
    try:
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)  # which ends this process
        signal.setitimer(signal.ITIMER_VIRTUAL, limits.TEMPLATE_SECONDS)
        if _PAGES.exists():
            size = int(_PAGES.read_text().split()[0]) * resource.getpagesize()
            hard = resource.getrlimit(resource.RLIMIT_AS)[1]
            limit = size + limits.TEMPLATE_BYTES
            limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
        action()
        outcome = b"+"
    except MemoryError:
        outcome = b"m"
    except BaseException:  # the same error comes where it can be reported
        outcome = b"+"
    os.write(sender, outcome)
    os._exit(0)

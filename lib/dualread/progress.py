"""Progress in words: a bar on a terminal, now and then a plain line in a log. Presentation only, so never keyed."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TextIO, TypeVar

T = TypeVar("T")


class _Voice:
    """What messages of this process are about, and the file that keeps them besides standard error."""

    subject: str = ""
    log: TextIO | None = None


_VOICE = _Voice()


def keep_log(path: Path) -> None:
    """From now on also write every message to `path`, which starts empty.

    The terminal cannot be piped through `tee` for this: what writes into a pipe draws no bar.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _VOICE.log = path.open("w", buffering=1, encoding="utf-8")


def work_on(subject: str) -> None:
    """Let progress begin with `subject`: jobs that run side by side share one terminal."""
    _VOICE.subject = f"{subject}: " if subject else ""


def say(message: str) -> None:
    """Write one line to standard error, and to the log where there is one; standard output belongs to results.

    In one write, which `print` does not: jobs that run side by side would end up in each other's lines.
    """
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()
    note(message)


def note(message: str) -> None:
    """Write one line to the log alone, where there is one."""
    if _VOICE.log is not None:
        with contextlib.suppress(OSError):  # a full disk must not hide the message that says so
            print(message, file=_VOICE.log, flush=True)


def track(
    items: Iterable[T],
    total: int,
    label: str,
    *,
    interval_seconds: float = 10.0,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[T]:
    """Yield `items` and tell how far it is.

    Args:
        items: What is worked through.
        total: How many there are.
        label: What they are: "questions".
        interval_seconds: Least time between two lines; on a terminal there is a bar, and only the log has the lines.
        clock: Seconds since some moment.
    """
    label = f"{_VOICE.subject}{label}"
    started = said = clock()
    with _bar(total, label) as bar:
        for done, item in enumerate(items, start=1):
            yield item
            if bar is not None:
                bar.update()
            if (now := clock()) - said >= interval_seconds:
                said = now
                left = (now - started) / done * max(total - done, 0)
                line = f"{label}: {done}/{total}, {_duration(now - started)} so far, about {_duration(left)} left"
                (say if bar is None else note)(line)


def _bar(total: int, label: str):
    if not sys.stderr.isatty():
        return contextlib.nullcontext()
    from tqdm import tqdm

    # On 80 columns the whole path would leave no room for the bar: "[stage] results/study/actors/..." loses its start.
    return tqdm(total=total, desc="/".join(label.split("/")[2:]) or label, leave=False, dynamic_ncols=True)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

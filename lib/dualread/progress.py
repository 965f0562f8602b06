"""Progress in words: a bar on a terminal, now and then a plain line in a log. Presentation only, so never keyed."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def say(message: str) -> None:
    """Write one line to standard error; standard output belongs to results."""
    print(message, file=sys.stderr, flush=True)


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
        interval_seconds: Least time between two lines where standard error is not a terminal.
        clock: Seconds since some moment.
    """
    if sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(items, total=total, desc=label, leave=False)
        return
    started = said = clock()
    for done, item in enumerate(items, start=1):
        yield item
        if (now := clock()) - said >= interval_seconds:
            said = now
            left = (now - started) / done * max(total - done, 0)
            say(f"{label}: {done}/{total}, {_duration(now - started)} so far, about {_duration(left)} left")


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

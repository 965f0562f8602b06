"""Messages and progress of a job: on the terminal, where progress is a bar, and in the job's log, as lines.

This does not use `logging`: a package that a job imports may call `logging.config.dictConfig`, which closes every
handler of the process. The job's log would then end there, without its "[stage] done". The module is not part of any
key.
"""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, TypeVar

from dualread.errors import printable

T = TypeVar("T")


class _Voice:
    """The subject with which progress lines of this process begin, and its log file."""

    subject: str = ""
    log: TextIO | None = None
    log_file: Path | None = None


_VOICE = _Voice()


def keep_log(path: Path) -> None:
    """From now on, also write every message to the file `path`, which is emptied first.

    Piping the output through `tee` would not do: progress bars are drawn only on a terminal.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _VOICE.log = path.open("w", buffering=1, encoding="utf-8")
    _VOICE.log_file = path


def work_on(subject: str) -> None:
    """Begin progress lines with `subject` from now on, because jobs that run side by side share one terminal."""
    _VOICE.subject = f"{subject}: " if subject else ""


def say(message: str) -> None:
    """Write one line to standard error, and to the log if there is one; standard output is for results.

    The line and its end are one write, unlike with `print`, so that lines of jobs that run side by side do not mix.
    """
    sys.stderr.write(f"{printable(message)}\n")
    sys.stderr.flush()
    note(message)


def note(message: str) -> None:
    """Write one line only to the log, if there is one."""
    if _VOICE.log is not None:
        with contextlib.suppress(OSError):  # a full disk must not keep the error about it from the terminal
            print(printable(message), file=_VOICE.log, flush=True)


def track(
    items: Iterable[T],
    total: int,
    label: str,
    *,
    interval_seconds: float = 10.0,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[T]:
    """Yield `items` and report progress: as a bar on a terminal, and as lines otherwise and in the log.

    Args:
        items: The items to process.
        total: Number of items.
        label: What the items are, such as "questions".
        interval_seconds: Minimum time between two lines.
        clock: Returns a time in seconds.
    """
    label = f"{_VOICE.subject}{label}"
    started = reported = clock()
    with _bar(total, label) as bar:
        for done, item in enumerate(items, start=1):
            yield item
            if bar is not None:
                bar.update()
            if (now := clock()) - reported >= interval_seconds:
                reported = now
                remaining = (now - started) / done * max(total - done, 0)
                line = f"{label}: {done}/{total}, {duration(now - started)} so far, about {duration(remaining)} left"
                (say if bar is None else note)(line)


STEPS = ".steps"  # the suffix of a file beside the log of a training


@dataclass(frozen=True, kw_only=True)
class NotedStep:
    """What a training said of one of its `of` steps: its number, from 1, and its values by name."""

    step: int
    of: int
    values: Mapping[str, float]


def steps_file() -> Path | None:
    """Return the file beside this job's log in which a training keeps its steps; None if the job has no log."""
    return None if _VOICE.log_file is None else _VOICE.log_file.with_suffix(STEPS)


def note_steps(file: Path | None, steps: Iterable[NotedStep], *, anew: bool = False) -> None:
    """Add steps to a file of `steps_file`, one line of JSON each; `anew` empties it first.

    Nothing but the curves of a training that still runs depends on the file, so a full disk is no error here.
    """
    if file is None:
        return
    lines = (json.dumps({"step": noted.step, "of": noted.of, "values": dict(noted.values)}) + "\n" for noted in steps)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w" if anew else "a", encoding="utf-8") as opened:
            opened.write("".join(lines))


def read_steps(file: Path) -> list[NotedStep]:
    """Return the steps of a file that may be written right now: a line that is not whole is left out."""
    steps = []
    for line in file.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]:
        with contextlib.suppress(ValueError, LookupError, TypeError, AttributeError):
            row = json.loads(line)
            values = {str(name): float(value) for name, value in row["values"].items()}
            steps.append(NotedStep(step=int(row["step"]), of=int(row["of"]), values=values))
    return steps


def _bar(total: int, label: str):
    if not sys.stderr.isatty():
        return contextlib.nullcontext()
    from tqdm import tqdm

    # The whole path would leave no room for the bar in 80 columns, so "[stage] results/study/" is cut off.
    return tqdm(total=total, desc="/".join(label.split("/")[2:]) or label, leave=False, dynamic_ncols=True)


def duration(seconds: float) -> str:
    """Return a time as people say it, such as 1 h 5 min."""
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    minutes, rest = divmod(rounded, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

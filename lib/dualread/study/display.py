"""What a run of a study says on the terminal: Snakemake's own messages, fewer of them, and in another order.

They are records of Python's `logging`. The steps of a plan are listed once and in columns, so that a dry run fits on
one screen. "12 of 29 steps (41%) done" is followed by how long the others take. What Snakemake says about a failed job,
with its command of many lines, waits until the job's own reason has been printed.
"""

import atexit
import logging
import math
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

_LOGGER = "snakemake.logging"
_COLUMNS, _GAP = 100, 3
# Of fewer steps than this, nobody needs to be told how long they take.
_FEW = 8
_COPIED = 0.3  # seconds of a job that computes nothing


class Display(logging.Filter):
    """Stands before the handlers of Snakemake's log."""

    def __init__(
        self, expected: Callable[[], Mapping[str, float]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take what returns the seconds that one job of each rule is expected to take, as far as that is known."""
        super().__init__()
        self.time_left = TimeLeft(expected, clock)
        self._listed = False
        self._held: list[logging.LogRecord] = []

    def show(self) -> None:
        """Begin, for the rest of this process."""
        logging.getLogger(_LOGGER).addFilter(self)
        atexit.register(self.release)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether Snakemake shows `record` now; it may be shortened, or held back until `release`."""
        event = getattr(getattr(record, "event", None), "name", None)
        if event == "RUN_INFO" and (stats := getattr(record, "stats", None)):
            first, self._listed = not self._listed, True
            self.time_left.planned(stats)
            record.msg = listed(stats)
            return first
        if event == "PROGRESS":
            self._add_time_left(record)
        elif event == "JOB_STARTED":
            self.time_left.started(getattr(record, "jobs", ()))
        elif event == "JOB_FINISHED":
            self.time_left.finished(getattr(record, "job_id", None), str(record.msg))
        elif event in (None, "ERROR") and record.levelno >= logging.ERROR and record not in self._held:
            self._held.append(record)
            return False
        # After these, a dry run lists all rules once more, by what Snakemake knows of their reasons.
        return not str(record.msg).startswith("Reasons:\n")

    def release(self) -> None:
        """Show what was held back."""
        for record in [*self._held]:
            logging.getLogger(_LOGGER).handle(record)
        self._held.clear()

    def _add_time_left(self, record: logging.LogRecord) -> None:
        done, total = getattr(record, "done", 0), getattr(record, "total", 0)
        seconds = self.time_left.seconds() if done < total and total >= _FEW else None
        if seconds is not None:
            record.msg = f"{done} of {total} steps ({done / total:.0%}) done, about {about(seconds)} left"
            record.event = None


class TimeLeft:
    """Estimates how long the remaining jobs of a run take.

    A job is expected to take as long as those of its rule took in this run; where there was none, as long as a forecast
    says, times how much longer other jobs took than it says of them.
    """

    def __init__(self, expected: Callable[[], Mapping[str, float]], clock: Callable[[], float]) -> None:
        self._expected, self._forecast, self._clock = expected, None, clock
        self._left: dict[str, int] = {}
        self._begun: dict[int, float] = {}
        self._took: dict[str, list[float]] = defaultdict(list)
        self._first: float | None = None

    def planned(self, stats: Mapping[str, int]) -> None:
        """Note how many jobs of each rule there are."""
        self._left = self._left or {rule: n for rule, n in stats.items() if rule != "total"}

    def started(self, jobs: Iterable[int]) -> None:
        """Note that these jobs start now."""
        now = self._clock()
        self._first = now if self._first is None else self._first
        self._begun |= dict.fromkeys(jobs, now)

    def finished(self, job: int | None, message: str) -> None:
        """Note that a job has ended, whose rule Snakemake's message names."""
        rule = re.search(r"\(Rule: (.+)\)", message)
        if rule is None or job not in self._begun:
            return
        self._took[rule[1]].append(self._clock() - self._begun.pop(job))
        self._left[rule[1]] = self._left.get(rule[1], 1) - 1

    def seconds(self) -> float | None:
        """Return the seconds that are left; None where nothing is known of the jobs that are."""
        if self._first is None or not self._took:
            return None
        if self._forecast is None:
            self._forecast = self._expected()
        known = {rule: sum(took) / len(took) for rule, took in self._took.items()}
        both = [
            (sum(took), self._forecast[rule] * len(took)) for rule, took in self._took.items() if rule in self._forecast
        ]
        measured, forecast = sum(seconds for seconds, _ in both), sum(seconds for _, seconds in both)
        slower = measured / forecast if forecast > 1 else 1.0
        work = 0.0
        for rule, n in self._left.items():
            each = known.get(rule)
            if each is None:
                each = self._forecast[rule] * slower if rule in self._forecast else _COPIED
            work += each * n
        if not self._forecast and any(n and rule not in known for rule, n in self._left.items()):
            return None
        busy = sum(map(sum, self._took.values()))
        at_once = max(1.0, busy / max(self._clock() - self._first, 1e-6))
        running = sum(self._clock() - begun for begun in self._begun.values())
        return max(work - running, 0.0) / at_once


def about(seconds: float) -> str:
    """Return seconds as text with two digits, because an estimate knows no more: "44 s", "5 min", "1.5 h"."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5940 else f"{seconds / 3600:.2g} h"


def listed(stats: Mapping[str, int]) -> str:
    """Return the steps of a plan, jobs by rule and their "total", as text in columns that are read downwards."""
    cells = [f"{rule} {n}" for rule, n in stats.items() if rule != "total"]
    width = max(map(len, cells), default=0) + _GAP
    n_columns = max(1, (_COLUMNS + _GAP - 2) // width)
    n_rows = math.ceil(len(cells) / n_columns)
    rows = ("".join(cell.ljust(width) for cell in cells[row::n_rows]).rstrip() for row in range(n_rows))
    return "\n".join([f"Steps, {stats.get('total', len(cells))} in all:", *(f"  {row}" for row in rows)])


def failures(logs: Path, since: float) -> Iterator[str]:
    """Yield what the logs of failed jobs say, one text per job, of logs that were written `since` then."""
    for path in sorted(logs.rglob("*.log")):
        if path.stat().st_mtime >= since:
            text = path.read_text(errors="replace").rstrip()
            if reason := re.search(r"^\[\w+\] error: ", text, re.MULTILINE):
                yield f"{text[reason.start() :]}\n  (log: {path})"
            elif not re.search(r"^\[\w+\] (done|interrupted.*)\Z", text, re.MULTILINE):
                end = re.search(r"^\[\w+\] ended (by|with exit code) (\w+)\Z", text, re.MULTILINE)
                yield f"{path}: {_of_a_killed_job(*end.groups() if end else ('by', ''))}"


def _of_a_killed_job(how: str, what: str) -> str:
    """Return what to do about a job that ended `how` ("by" a signal, "with exit code") and without a message."""
    again = "Run the same command again: artifacts that it finished are kept."
    if how != "by":
        return (
            f"this job ended with exit code {what} and without a message: something that it ran, such as a plugin or a"
            f" package, ended the process. Look into the log. {again}"
        )
    if what not in ("", "SIGKILL"):
        return f"this job was ended by {what}. {again}"
    return (
        f"this job was killed, perhaps for lack of memory{'' if what else ', or ended without a message'}. {again} To"
        " run fewer models at once, raise machine.model_job_memory_gb; on a cluster, raise the stage's mem_mb or"
        " runtime in the profile."
    )

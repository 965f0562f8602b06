import logging
import os
from types import SimpleNamespace

import pytest

from dualread.study.display import Display, TimeLeft, about, failures, listed

EVENTS = {name: SimpleNamespace(name=name) for name in ("RUN_INFO", "PROGRESS", "JOB_STARTED", "JOB_FINISHED", "ERROR")}


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def log():
    """What Snakemake's log shows through a display; `log(event, msg, ...)` writes one record."""
    shown, clock = [], Clock()
    display = Display(lambda: {"train": 60.0, "grade": 10.0}, clock)
    handler = logging.Handler()
    handler.emit = lambda record: shown.append(record)
    logger = logging.getLogger("snakemake.logging")
    logger.addHandler(handler)
    logger.addFilter(display)
    logger.setLevel(logging.INFO)
    logger.propagate = False

    def write(event, msg=None, level=logging.INFO, **more):
        logger.log(level, msg, extra={"event": EVENTS[event], **more} if event else more)

    write.shown, write.clock, write.display = shown, clock, display
    yield write
    logger.removeFilter(display)
    logger.removeHandler(handler)


STATS = {"build": 1, "train": 4, "grade": 4, "all": 1, "total": 10}


def test_steps_are_listed_once_in_columns(log):
    for _ in range(3):
        log("RUN_INFO", "Job stats: ...", stats=STATS)
    log(None, "Reasons:\n    (check individual jobs above for details)")
    log(None, "This was a dry-run")
    assert [record.msg for record in log.shown] == [
        "Steps, 10 in all:\n  build 1   train 4   grade 4   all 1",
        "This was a dry-run",
    ]
    many = {f"a_rule_with_a_long_name_{k}": 1 for k in range(60)}
    lines = listed({**many, "total": 60}).splitlines()
    assert len(lines) < 25
    assert max(map(len, lines)) <= 100
    assert lines[1].split()[::2] == [f"a_rule_with_a_long_name_{k}" for k in (0, 20, 40)]


def progress(log, done, total=10):
    log("PROGRESS", None, done=done, total=total)
    return log.shown[-1].msg


def job(log, number, rule, seconds):
    log("JOB_STARTED", "Execute 1 jobs...", jobs=[number])
    log.clock.now += seconds
    log("JOB_FINISHED", f"Finished jobid: {number} (Rule: {rule})", job_id=number)


def test_time_left_by_hand(log):
    log("RUN_INFO", "", stats=STATS)
    assert progress(log, 0) is None
    # Foreseen: 4 x 60 + 4 x 10; and two steps that copy, .3 s each. One is done: 280.3 s.
    job(log, 1, "build", 1.0)
    assert progress(log, 1) == "1 of 10 steps (10%) done, about 5 min left"
    # The first training took twice as long as foreseen; so will the gradings: 3 x 120 + 4 x 20 + .3 = 440.3 s.
    job(log, 2, "train", 120.0)
    assert progress(log, 2) == "2 of 10 steps (20%) done, about 7 min left"
    # Another took 60 s: on average 90. Trainings and gradings are (180 / 120) 1.5 times slower: 2 x 90 + 4 x 15 + .3.
    job(log, 3, "train", 60.0)
    assert progress(log, 3) == "3 of 10 steps (30%) done, about 4 min left"


def test_jobs_at_the_same_time_take_less_of_it():
    clock = Clock()
    left = TimeLeft(lambda: {}, clock)
    left.planned({"train": 4, "total": 4})
    left.started([1, 2])
    clock.now = 10
    for number in (1, 2):
        left.finished(number, f"Finished jobid: {number} (Rule: train)")
    assert left.seconds() == pytest.approx(10)  # 2 x 10 s of work, two at once


def test_nothing_is_said_where_nothing_is_known_or_little_is_left(log):
    unknown = TimeLeft(lambda: {}, Clock())
    unknown.planned(STATS)
    unknown.started([1])
    unknown.finished(1, "Finished jobid: 1 (Rule: build)")
    assert unknown.seconds() is None
    log("RUN_INFO", "", stats={"build": 2, "total": 2})
    job(log, 1, "build", 1.0)
    assert progress(log, 1, total=2) is None


def test_what_snakemake_says_of_a_failure_waits_for_the_reason(log):
    log(None, "RuleException:\nCommand 'set -euo pipefail ...' returned non-zero", level=logging.ERROR)
    log(None, "Shutting down, this might take some time.")
    assert [record.msg for record in log.shown] == ["Shutting down, this might take some time."]
    log.display.release()
    log.display.release()  # at the end of the process, too
    assert [str(record.msg)[:13] for record in log.shown] == ["Shutting down", "RuleException"]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "1 s"), (44.4, "44 s"), (61, "1 min"), (3000, "50 min"), (5940, "1.6 h"), (90000, "25 h")],
)
def test_an_estimate_has_two_digits(seconds, said):
    assert about(seconds) == said


def test_a_reason_is_what_a_log_says_from_its_error_on(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.log").write_text("[grade] working\n[grade] error: q1: no answer.\n")
    (logs / "b.log").write_text("[grade] working\n[grade] done\n")
    (logs / "c.log").write_text("[grade] working\n[grade] interrupted; finished entries are in the store\n")
    (logs / "d.log").write_text("[grade] working\n")
    (logs / "old.log").write_text("[grade] error: of an earlier run\n")
    os.utime(logs / "old.log", (1, 1))
    said = list(failures(logs, since=2))
    assert said[0] == f"[grade] error: q1: no answer.\n  (log: {logs / 'a.log'})"
    assert said[1].startswith(f"{logs / 'd.log'}: this job was killed")
    assert len(said) == 2


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("ended by SIGKILL", "this job was killed, perhaps for lack of memory. Run"),
        ("ended by SIGTERM", "this job was ended by SIGTERM. Run"),
        ("ended with exit code 3", "this job ended with exit code 3 and without a message: "),
    ],
)
def test_only_what_was_killed_perhaps_lacked_memory(tmp_path, end, said):
    (tmp_path / "a.log").write_text(f"[grade] working\n[grade] {end}\n")
    (found,) = failures(tmp_path, since=0)
    assert found.startswith(f"{tmp_path / 'a.log'}: {said}")
    (tmp_path / "a.log").write_text(f"[grade] error: q1: no answer.\n[grade] {end}\n")
    assert next(failures(tmp_path, since=0)).startswith("[grade] error: q1: no answer.")

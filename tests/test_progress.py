import io
import sys

import pytest

from dualread import progress
from dualread.progress import say, track


@pytest.fixture
def seconds():
    """The time of a clock that only the test moves forward."""
    return [0.0]


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "_VOICE", progress._Voice())
    progress.keep_log(tmp_path / "logs" / "job.log")
    yield tmp_path / "logs" / "job.log"
    progress._VOICE.log.close()


def _work(items, seconds, each):
    for item in items:
        seconds[0] += each
        yield item


def test_a_line_is_one_write(monkeypatch):
    writes = []
    monkeypatch.setattr(sys, "stderr", type("Pipe", (), {"write": writes.append, "flush": lambda self: None})())
    say("a line")
    assert writes == ["a line\n"]  # jobs share a pipe: with two writes, the end could come after another job's line


def test_long_work_prints_at_most_one_line_per_interval_and_short_work_nothing(seconds, capsys):
    def clock():
        return seconds[0]

    assert list(track(_work(range(9), seconds, each=1.0), 9, "questions", clock=clock)) == list(range(9))
    assert capsys.readouterr().err == ""
    seconds[0] = 0.0
    list(track(_work(range(100), seconds, each=3.0), 100, "questions", clock=clock))
    lines = capsys.readouterr().err.splitlines()
    # A line is due at the first item 10 s or more after the last line: every fourth of 3 s.
    assert len(lines) == 25
    # After 4 of 100: 12 s passed, (12 / 4) * 96 = 288 s are left.
    assert lines[0] == "questions: 4/100, 12 s so far, about 4 min 48 s left"
    assert lines[-1] == "questions: 100/100, 5 min 0 s so far, about 0 s left"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (61, "1 min 1 s"), (7260, "2 h 1 min")]
)
def test_durations(seconds, text):
    assert progress.duration(seconds) == text


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_log_has_lines_while_the_terminal_has_a_bar(monkeypatch, seconds, log):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    progress.work_on("[train_actor] results/s/actors/b/rlvr/17")
    assert list(track(_work(range(2), seconds, each=10.0), 2, "steps", clock=lambda: seconds[0])) == [0, 1]
    assert "rlvr/17: steps" in terminal.getvalue()
    assert "so far" not in terminal.getvalue()
    line = "[train_actor] results/s/actors/b/rlvr/17: steps: 1/2, 10 s so far, about 10 s left"
    assert log.read_text().splitlines()[0] == line


def test_the_log_holds_messages_and_notes_and_standard_error_messages_alone(log, capsys):
    say("hello")
    progress.note("details")
    assert log.read_text() == "hello\ndetails\n"
    assert capsys.readouterr() == ("", "hello\n")


def test_steps_are_kept_beside_the_log(log):
    file = progress.steps_file()
    assert file == log.with_name("job.steps")
    steps = [progress.NotedStep(step=k, of=3, values={"reward": 0.5 * k, "kl": float("nan")}) for k in (1, 2)]
    progress.note_steps(file, steps[:1])
    progress.note_steps(file, steps[1:])
    assert [(one.step, one.of, one.values["reward"]) for one in progress.read_steps(file)] == [(1, 3, 0.5), (2, 3, 1.0)]
    progress.note_steps(file, [], anew=True)
    assert progress.read_steps(file) == []


def test_without_a_log_no_steps_are_kept_and_a_full_disk_is_no_error(monkeypatch, tmp_path):
    monkeypatch.setattr(progress, "_VOICE", progress._Voice())
    monkeypatch.chdir(tmp_path)
    assert progress.steps_file() is None
    progress.note_steps(None, [progress.NotedStep(step=1, of=1, values={})])
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "job.steps").mkdir()  # cannot be opened, as on a full disk
    progress.note_steps(tmp_path / "job.steps", [progress.NotedStep(step=1, of=1, values={})])

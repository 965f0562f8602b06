"""The process in which vLLM answers, with a stand-in for vLLM: what it is told, and what it tells."""

import threading
from dataclasses import replace
from multiprocessing import Pipe
from types import SimpleNamespace

import pytest

from dualread.apps.score.answering import ActorNeeds
from dualread.apps.serve import actors
from dualread.apps.serve.vectors import ReadersVectors
from dualread.apps.serve.vllm_process import answer
from dualread.errors import ArtifactError, DualReadError
from dualread.models.streams import TokenEvent
from tests.apps.score import small


class Counting:
    """Says the numbers from 0 to `n` - 1 of each request, one per step."""

    def __init__(self):
        self.open: dict[str, range] = {}  # what is left to say

    @property
    def n_open(self):
        return len(self.open)

    def add(self, name, n):
        self.open[name] = range(n)

    def abort(self, name):
        self.open.pop(name, None)

    def step(self):
        if "broken" in self.open:
            raise ValueError("a bug")
        said = [TokenEvent(name=name, index=0, token=left[0], log_prob=None) for name, left in self.open.items()]
        self.open = {name: left[1:] for name, left in self.open.items() if len(left) > 1}
        return said


class Running:
    """`answer` in a thread, and our end of its connection."""

    def __init__(self, opens):
        self.ours, theirs = Pipe()
        self.thread = threading.Thread(target=self._run, args=(theirs, opens))
        self.raised = None
        self.thread.start()
        self.first = self.told()

    def _run(self, theirs, opens):
        # It is not closed here: a thread still reads from it, and would read from the next file that gets its number.
        try:
            answer(theirs, opens)
        except ValueError as error:
            self.raised = error

    def call(self, *message):
        self.ours.send(message)

    def told(self):
        return self.ours.recv()

    def tokens(self):
        events, n_open = self.told()
        return [(event.name, event.token) for event in events], n_open


@pytest.fixture
def running():
    made = Running(Counting)
    assert made.first is None  # it is open
    yield made
    made.ours.close()
    made.thread.join(10)
    assert not made.thread.is_alive()


def test_each_step_tells_what_is_said_and_how_much_is_open(running):
    running.call("add", ("a", 2))
    assert running.tokens() == ([("a", 0)], 1)
    assert running.tokens() == ([("a", 1)], 0)
    assert not running.ours.poll(0.05)  # nothing is open, and no step is made
    running.call("add", ("b", 10**9))
    assert running.tokens() == ([("b", 0)], 1)
    running.call("abort", ("b",))
    while (told := running.tokens())[1]:
        pass
    assert told == ([], 0)


@pytest.mark.parametrize("is_told", [True, False])
def test_it_ends_when_it_is_told_to_or_nobody_is_there_in_the_midst_of_an_answer(running, is_told):
    if is_told:
        running.ours.send(None)
        running.thread.join(10)
        assert not running.thread.is_alive()
    else:
        running.call("add", ("a", 10**9))
        running.tokens()  # and the fixture closes our end


def test_a_bug_is_told_as_text(running):
    running.call("add", ("broken", 1))
    told = running.told()
    assert isinstance(told, RuntimeError)
    assert "a bug" in str(told)
    running.thread.join(10)
    assert isinstance(running.raised, ValueError)  # its traceback is for the log


def test_why_it_cannot_be_opened_is_told():
    def refuse():
        raise ArtifactError("no checkpoint here")

    made = Running(refuse)
    made.thread.join(10)
    made.ours.close()
    assert isinstance(made.first, DualReadError)
    assert str(made.first) == "no checkpoint here"


def test_the_state_of_the_prompt_is_read_whatever_readers_read():
    """By it, a question is compared with those of the validation split."""
    needs = ActorNeeds(requirements=small.requirements(), features=frozenset({"h_close"}), kappa=0.1)
    assert ReadersVectors.from_needs(needs).names == {"h_pre", "h_close"}
    assert ReadersVectors.from_needs(replace(needs, features=frozenset(), kappa=None)) is None


def test_nothing_of_the_working_directory_is_imported(monkeypatch, tmp_path):
    """A folder that was downloaded may hold a module of any name; here the process is asked for what it refuses."""
    (tmp_path / "numpy.py").write_text("from pathlib import Path\n\nPath('imported').touch()\nraise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    for name in ("prepare", "send_as_arrays", "check"):
        monkeypatch.setattr(actors, name, lambda *given: None)
    monkeypatch.setattr(actors, "encoder_of", lambda *given: None)
    monkeypatch.setattr(actors, "read_config", lambda folder: SimpleNamespace(get_text_config=dict))
    with pytest.raises(RuntimeError, match="unknown_option"):
        actors.OnVllm(tmp_path, ActorNeeds(requirements=SimpleNamespace(model={})), unknown_option=1)
    assert not (tmp_path / "imported").exists()

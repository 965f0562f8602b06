"""A folder that several processes ask for is made by one of them (tests/once.py)."""

import ast
import threading
from pathlib import Path

import pytest

from tests.conftest import OF_SMOKE
from tests.once import once


@pytest.fixture(autouse=True)
def own_run(monkeypatch, tmp_path_factory, tmp_path):
    """A run of the tests with folders of its own."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setattr(tmp_path_factory, "getbasetemp", lambda: tmp_path)


def test_a_folder_is_made_once_and_the_second_one_waits_until_it_is_finished(tmp_path_factory):
    started, finish, seen = threading.Event(), threading.Event(), []

    def make(folder):
        started.set()
        assert finish.wait(60)
        (folder / "result").write_text("finished")

    def fail(folder):
        raise AssertionError("made twice")

    first = threading.Thread(target=once, args=(tmp_path_factory, "study", make))
    second = threading.Thread(target=lambda: seen.append(once(tmp_path_factory, "study", fail)))
    first.start()
    assert started.wait(60)
    second.start()
    second.join(0.2)
    assert second.is_alive()
    finish.set()
    first.join()
    second.join()
    assert [(folder / "result").read_text() for folder in seen] == ["finished"]


def test_after_a_failure_the_next_one_starts_with_an_empty_folder(tmp_path_factory):
    def fail(folder):
        (folder / "half").touch()
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        once(tmp_path_factory, "study", fail)
    assert list(once(tmp_path_factory, "study", lambda folder: None).iterdir()) == []


def test_files_that_take_the_smoke_study_share_a_process():
    """In another process, the study would be made once more."""
    folder = Path(__file__).parent / "workflow"
    for file in folder.glob("test_*.py"):
        functions = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)]
        takes = [one for one in functions if one.name.startswith("test_") or one.decorator_list]
        if any(argument.arg == "study" for one in takes for argument in one.args.args):
            assert file.stem.removeprefix("test_") in OF_SMOKE, file

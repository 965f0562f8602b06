import multiprocessing
import os
import subprocess
import sys
import uuid
from dataclasses import dataclass

import numpy as np
import pytest

from dualread import devices
from dualread.errors import DataError, DualReadError
from dualread.models.actor import Loglikelihoods, Request, SeededDecoding
from dualread.models.generation.data_parallel import DataParallelEngine, by_image

GREEDY = SeededDecoding(temperature=0.0, top_p=1.0, n_samples=1, max_completion_tokens=1, seed=0)


def requests(*images: str) -> list[Request]:
    return [Request(text="?", images=[None], image_name=name, row=f"row {i}") for i, name in enumerate(images)]


@dataclass
class Parrot:
    """An engine that returns which rows it was given and on which GPU; certain image names make it fail."""

    encoder: object = None

    def answer(self, requests, decoding):
        names = {request.image_name for request in requests}
        if "bad data" in names:
            raise DataError("row 1: bad")
        if "a defect" in names:
            raise ZeroDivisionError("unexpected")
        if "death" in names:
            os._exit(1)
        return [[(request.row, os.environ["CUDA_VISIBLE_DEVICES"])] for request in requests]

    def loglikelihoods(self, requests, continuations):
        of = zip(requests, continuations, strict=True)
        return [Loglikelihoods(prompt_token_ids=(int(r.row[4:]),), values=np.array(c, float)) for r, c in of]


def open_parrot(name):
    assert name == "an argument"
    return Parrot()


@pytest.fixture
def two():
    return DataParallelEngine(open_parrot, ("an argument",), ["3", "5"], None)


def test_requests_about_one_image_are_adjacent_and_keep_their_order():
    assert by_image(requests("b", "a", "b", "a")) == [1, 3, 0, 2]


def test_parts_are_of_equal_size(two):
    assert [two.parts(range(n)) for n in (4, 5, 1)] == [[[0, 1], [2, 3]], [[0, 1, 2], [3, 4]], [[0], []]]


def test_results_are_in_the_order_of_the_requests_and_each_part_has_its_own_gpu(two):
    answers = two.answer(requests("b", "a", "b", "a"), GREEDY)
    assert answers == [[("row 0", "5")], [("row 1", "3")], [("row 2", "5")], [("row 3", "3")]]
    scored = two.loglikelihoods(requests("b", "a", "b"), [[0.5], [1.5, 2.5], [3.5]])
    assert [(w.prompt_token_ids, w.values.tolist()) for w in scored] == [
        ((0,), [0.5]),
        ((1,), [1.5, 2.5]),
        ((2,), [3.5]),
    ]


def test_an_error_in_a_process_is_raised_here(two):
    with pytest.raises(DataError, match="row 1: bad"):
        two.answer(requests("a", "bad data"), GREEDY)
    with pytest.raises(DualReadError, match="ZeroDivisionError: unexpected"):
        two.answer(requests("a", "a defect"), GREEDY)
    with pytest.raises(DualReadError, match=r"process 1 of 2 ended without an answer.*max_num_seqs"):
        two.answer(requests("a", "death"), GREEDY)


@pytest.mark.rest
def test_a_process_that_is_killed_between_two_calls_ends_in_a_sentence(two):
    two.answer(requests("a", "b"), GREEDY)
    for child in multiprocessing.active_children():
        child.kill()
        child.join()
    with pytest.raises(DualReadError, match="ended without an answer"):
        two.answer(requests("a", "b"), GREEDY)


SLOW = """
import os, time
from pathlib import Path

class Slow:
    def answer(self, requests, decoding):
        Path("began-" + os.environ["CUDA_VISIBLE_DEVICES"]).touch()
        while len(list(Path().glob("began-*"))) < 2:
            time.sleep(0.05)
        os.kill(os.getppid(), 9)
        time.sleep(2)
        Path("ended-" + os.environ["CUDA_VISIBLE_DEVICES"]).touch()

def open_one():
    return Slow()
"""
KILLED = """
import os
import slow
from dualread.devices import taken
from dualread.models.generation.data_parallel import DataParallelEngine

with taken(2):
    gpus = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    DataParallelEngine(slow.open_one, (), gpus, None).answer([], None)
"""


@pytest.mark.rest
def test_the_gpus_of_a_killed_job_are_free_when_its_engines_have_ended(tmp_path, monkeypatch):
    names = [f"test-{uuid.uuid4()}" for _ in range(2)]
    monkeypatch.setenv(devices.VISIBLE, ",".join(names))
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "temporary").mkdir()
    command, environment = [sys.executable, "-c", KILLED], {"PYTHONPATH": ".", "TMPDIR": str(tmp_path / "temporary")}
    assert subprocess.run(command, cwd=tmp_path, check=False, env={**os.environ, **environment}).returncode == -9
    assert not list((tmp_path / "temporary").iterdir())
    with devices.taken(2):
        assert sorted(path.name for path in tmp_path.glob("ended-*")) == sorted(f"ended-{name}" for name in names)
    for name in names:
        (devices.FOLDER / f"{name}.lock").unlink()

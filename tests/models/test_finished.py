"""Batches that a killed job has finished are read, and not computed again."""

from dataclasses import dataclass

import numpy as np
import pytest

from dualread.models.actor import Completion
from dualread.models.finished import each_batch
from dualread.store import partial
from dualread.store.store import Store

KEY = "ab" + "0" * 62
BATCHES = [[0, 2], [1], [3, 4]]


@dataclass(frozen=True, kw_only=True)
class Inner:
    places: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Result:
    row: int
    states: dict[str, np.ndarray]
    inner: Inner
    text: str | None
    ids: list[int]


def result(i):
    states = {"h": np.arange(3, dtype=np.float32) + i, "empty": np.zeros((0, 2))}
    return Result(row=i, states=states, inner=Inner(places=(i, i + 1)), text="ü" if i else None, ids=[i] * i)


class Killed(BaseException):
    pass


def run(store, *, dies_at=None):
    """Return the results by row, and the rows that were computed."""
    computed, found = [], {}

    def compute(batch):
        if dies_at in batch:
            raise Killed
        computed.extend(batch)
        return [result(i) for i in batch]

    with partial.offered(store, KEY):
        for batch, results in each_batch(BATCHES, compute, Result, Inner, label="batches"):
            found |= dict(zip(batch, results, strict=True))
    return found, computed


def test_a_killed_job_goes_on_after_its_last_batch(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(Killed):
        run(store, dies_at=3)
    found, computed = run(store)
    assert computed == [3, 4]
    for i, one in found.items():
        expected = result(i)
        assert (one.row, one.inner, one.text, one.ids) == (i, expected.inner, expected.text, expected.ids)
        for name, array in expected.states.items():
            assert np.array_equal(one.states[name], array)
            assert one.states[name].dtype == array.dtype
    assert not list((tmp_path / "partial").iterdir())  # the job is finished


def test_a_damaged_batch_is_computed_again(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(Killed):
        run(store, dies_at=3)
    (kept, *_) = (tmp_path / "partial" / KEY).glob("0.safetensors")
    kept.write_bytes(kept.read_bytes()[:-3])
    assert run(store)[1] == [0, 2, 3, 4]


def test_nothing_is_kept_outside_of_a_job_or_of_a_single_batch(tmp_path):
    def completion(i):
        return Completion(prompt_token_ids=[1], token_ids=[i], token_log_probs=[-0.1], text="a", finish_reason="stop")

    def compute(batch):
        return [[completion(i)] for i in batch]

    assert len(list(each_batch(BATCHES, compute, Completion, label="batches"))) == 3
    with partial.offered(Store(tmp_path), KEY):
        assert next(iter(each_batch([[0, 1]], compute, Completion, label="batches")))[1][1][0].token_ids == [1]
    assert not (tmp_path / "partial").exists()

"""Batches that a job has computed are read, and not computed again, where their content is equal."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from PIL import Image

from dualread.errors import ArtifactError
from dualread.models.actor import Request
from dualread.models.finished import in_batches
from dualread.models.images.base import ChangedImage
from dualread.store import batches as store_batches
from dualread.store.key import Action
from dualread.store.store import Store
from tests.tiny import image

ACTION = Action(stage="generate", code="c", spec={"a": 1}, inputs={"actor": "x", "manifest": "m"}, packages={"p": "1"})
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


def run(
    store,
    *,
    action=ACTION,
    batches=BATCHES,
    content="abcde",
    dies_at=None,
    by_row=("manifest",),
    label="batches",
    confirm=lambda: None,
):
    """Return the results by row, and the rows that were computed."""
    computed = []

    def compute(batch):
        if dies_at in batch:
            raise Killed
        computed.extend(batch)
        return [result(i) for i in batch]

    with store_batches.offered(store, action, confirm):
        store_batches.read_by_row(*by_row)
        results = in_batches(batches, compute, Result, Inner, rows=[content], label=label)
    return dict(enumerate(results)), computed


def test_a_killed_job_goes_on_after_its_last_batch(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(Killed):
        run(store, dies_at=3)
    results, computed = run(store)
    assert computed == [3, 4]
    for i, row in results.items():
        expected = result(i)
        assert (row.row, row.inner, row.text, row.ids) == (i, expected.inner, expected.text, expected.ids)
        for name, array in expected.states.items():
            assert np.array_equal(row.states[name], array)
            assert row.states[name].dtype == array.dtype


def test_what_is_read_by_row_counts_for_the_batches_with_these_rows(tmp_path):
    store, other = Store(tmp_path), replace(ACTION, inputs={"actor": "x", "manifest": "other"})
    assert run(store)[1] == [0, 2, 1, 3, 4]
    assert run(store, action=other)[1] == []
    assert run(store, action=other, content="aBcde")[1] == [1]
    assert run(store, action=other, batches=[[3, 4], [2, 0], [1]])[1] == [2, 0]  # another place, and another order


@pytest.mark.parametrize(
    "change",
    [
        {"code": "d"},
        {"spec": {"a": 2}},
        {"packages": {"p": "2"}},
        {"inputs": {"actor": "y", "manifest": "m"}},
        {"inputs": {"actor": "x", "manifest": "m", "new": "n"}},
    ],
    ids=["code", "spec", "packages", "checkpoint", "another input"],
)
def test_all_else_of_a_key_counts_for_every_batch(tmp_path, change):
    store = Store(tmp_path)
    run(store)
    assert run(store, action=replace(ACTION, **change))[1] == [0, 2, 1, 3, 4]
    assert run(store, label="another computation")[1] == [0, 2, 1, 3, 4]


def test_a_damaged_batch_is_computed_again(tmp_path, capsys):
    store = Store(tmp_path)
    run(store)
    damaged = next(file for file in store_batches.batch_files(store) if b'row\\": 3' in file.read_bytes())
    damaged.chmod(0o644)
    damaged.write_bytes(damaged.read_bytes().replace(b'row\\": 3', b'row\\": 7'))
    results, computed = run(store)
    assert computed == [3, 4]
    assert results[3].row == 3
    assert f"{damaged}: damaged" in capsys.readouterr().err
    assert run(store)[1] == []


def test_a_batch_of_another_user_is_read_and_a_full_disk_stops_nothing(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError

    store = Store(tmp_path)
    run(store)
    monkeypatch.setattr(store_batches.os, "utime", refused)
    assert run(store)[1] == []
    monkeypatch.setattr(store_batches, "settle", refused)
    for _ in range(2):
        assert run(store, label="another computation")[1] == [0, 2, 1, 3, 4]
    assert not list((tmp_path / "tmp").iterdir())


def test_what_was_computed_while_a_package_or_an_input_was_replaced_is_not_kept(tmp_path):
    def confirm():
        raise ArtifactError("replaced")

    run(Store(tmp_path), confirm=confirm)
    assert store_batches.batch_files(Store(tmp_path)) == []


def test_nothing_is_kept_outside_of_a_job_or_by_a_stage_that_names_no_input(tmp_path):
    store = Store(tmp_path)
    run(store, by_row=())
    assert in_batches(BATCHES, lambda batch: [result(i) for i in batch], rows=[], label="batches")
    assert store_batches.batch_files(store) == []


def test_a_request_is_its_words_its_seed_and_the_content_of_its_image(tmp_path):
    file = tmp_path / "0.png"
    image(1).save(file)
    request = Request(text="What?", images=[file], image_name="0", row="a", prefix=(1,))
    changed = ChangedImage(source=file, content="c", changes=(("models.images.blur", "{}"),), draw=0)
    others = [
        replace(request, text="Who?"),
        replace(request, row="b"),
        replace(request, prefix=(2,)),
        replace(request, before=(("system", "Be brief."),)),
        replace(request, images=[]),
        replace(request, images=[file, file]),
        replace(request, images=[Image.new("RGB", (8, 8))]),
        replace(request, images=[Image.new("RGB", (8, 9))]),
        replace(request, images=[changed]),
        replace(request, images=[replace(changed, draw=1)]),
        replace(request, images=[replace(changed, changes=())]),
    ]
    requests, store = [request, *others], Store(tmp_path)

    def computed():
        return run(store, batches=[[i] for i in range(len(requests))], content=requests)[1]

    assert computed() == list(range(len(requests)))  # none is another one's
    assert computed() == []
    image(2).save(file)  # another picture with the same name
    shows_file = [i for i, asked in enumerate(requests) if any(not isinstance(it, Image.Image) for it in asked.images)]
    assert computed() == shows_file

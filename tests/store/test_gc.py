import json
import os
import shutil

import pytest

from dualread.store.batches import RECORDED, Batches, batch_files
from dualread.store.copy import write_lock
from dualread.store.gc import BATCH, leftovers, remove
from dualread.store.key import Action
from dualread.store.record import HOST, birth
from dualread.store.store import Store
from tests.store.entries import HOUR, grow_old, publish

DEAD = 2**22 + 1  # above the largest process id that Linux gives


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results" / "store")


def _found(store, tmp_path, **options):
    return list(leftovers(store, results=[tmp_path / "results"], **options))


def test_what_a_study_needs_is_no_leftover(store, tmp_path):
    raw = publish(store, "raw", {"a": "1"})
    publish(store, "top", {"a": "2"}, inputs={"raw": raw}, output=tmp_path / "results" / "small" / "top")
    unneeded = publish(store, "old", {"a": "12345"})
    (found,) = _found(store, tmp_path)
    assert (found.kind, found.key, found.kept) == ("old", unneeded.key, "written within the last hour")
    grow_old(found.path, 2 * HOUR)
    (found,) = _found(store, tmp_path)
    assert found.kept is None
    assert 2 * HOUR <= found.seconds < 2 * HOUR + 60


def test_an_entry_that_a_result_names_is_kept_although_a_newer_one_with_the_same_bytes_is_shown(store, tmp_path):
    """After an early cut-off, no folder links the entry that the artifact was made from."""
    results = tmp_path / "results" / "small"
    old = publish(store, "raw", {"a": "1"}, spec={"n": 1}, output=results / "raw")
    publish(store, "top", {"a": "2"}, inputs={"raw": old}, output=results / "top")
    new = publish(store, "raw", {"a": "1"}, spec={"n": 2}, output=results / "raw")
    assert (old.digest, old.key) != (new.digest, new.key)
    assert (store.entry(old.key) / "a").stat().st_nlink == 1
    assert _found(store, tmp_path) == []


def test_what_a_lock_names_is_no_leftover(store, tmp_path):
    publish(store, "top", {"a": "2"}, output=tmp_path / "results" / "small" / "top")
    lock = write_lock(tmp_path / "results" / "small", store)
    assert len(lock.targets) == 1
    shutil.rmtree(tmp_path / "results" / "small" / "top")
    assert _found(store, tmp_path) == []
    (tmp_path / "results" / "small" / "results.lock").rename(tmp_path / "elsewhere.lock")
    assert len(_found(store, tmp_path)) == 1
    assert _found(store, tmp_path, locks=[tmp_path / "elsewhere.lock"]) == []


def test_what_any_folder_links_is_no_leftover_and_neither_is_what_it_was_made_from(store, tmp_path):
    raw = publish(store, "raw", {"a": "1"})
    output = tmp_path / "results" / "small" / "top"
    manifest = publish(store, "top", {"deep/a": "12345"}, inputs={"raw": raw}, output=output)
    (tmp_path / "copy").hardlink_to(output / "deep/a")
    shutil.rmtree(output)
    assert _found(store, tmp_path) == []
    (tmp_path / "copy").unlink()
    assert {found.key for found in _found(store, tmp_path)} == {raw.key, manifest.key}


def test_files_with_another_hard_link_are_not_freed(store, tmp_path):
    output = tmp_path / "results" / "small" / "top"
    manifest = publish(store, "top", {"a": "12345"}, output=output)
    store.quarantine(manifest.key, [])
    (found,) = _found(store, tmp_path)
    assert (found.kind, found.size - found.freed) == ("damaged entry", 5)  # "12345"; MANIFEST.json is not linked


def test_an_entry_that_is_being_recomputed_is_kept(store, tmp_path):
    (tmp_path / "results" / "small").mkdir(parents=True)
    manifest = publish(store, "old", {"a": "1"})
    grow_old(store.entry(manifest.key), 2 * HOUR)
    lease = store.root / "partial" / f"{manifest.key}.lease"
    lease.parent.mkdir()
    own = birth(os.getpid())
    # The process that holds it, one that has ended, and another one that got the number of one that has ended.
    for pid, born, kept in ((os.getpid(), own, "in use"), (DEAD, own, None), (os.getpid(), "before a restart", None)):
        lease.write_text(json.dumps({"host": HOST, "pid": pid, "birth": born}))
        assert [found.kept for found in _found(store, tmp_path)] == [kept]


@pytest.mark.parametrize(
    ("name", "hours", "kept"),
    [
        (f"partial/{'a' * 64}", 0.5, "written within the last hour"),
        (f"partial/{'a' * 64}", 2, "for a week, to resume from"),
        (f"partial/{'a' * 64}", 8 * 24, None),
        (f"tmp/{'a' * 64}.{HOST}.{DEAD}.x", 2, None),
        (
            f"tmp/{'a' * 64}.{HOST}.own.x",
            8 * 24,
            "in use",
        ),  # "own" stands for this process id, which must not be in the name of a test
        (f"tmp/{'a' * 64}.elsewhere.1.x", 2, "another host may be using it"),
        (f"tmp/{'a' * 64}.elsewhere.1.x", 8 * 24, None),
        (f"damaged/{'a' * 64}.123", 2, None),
    ],
)
def test_what_killed_jobs_left_is_kept_as_long_as_it_may_be_needed(store, tmp_path, name, hours, kept):
    name = name.replace(".own.", f".{os.getpid()}.")
    folder = store.root / name
    folder.mkdir(parents=True)
    (folder / "file").write_text("12345")
    grow_old(folder, hours * HOUR)
    (found,) = _found(store, tmp_path)
    assert (found.kept, found.key, found.size) == (kept, "a" * 64, 5)


def test_checkpoints_of_a_finished_entry_are_not_kept(store, tmp_path):
    manifest = publish(store, "top", {"a": "2"}, output=tmp_path / "results" / "small" / "top")
    folder = store.root / "partial" / manifest.key
    folder.mkdir(parents=True)
    grow_old(folder, 2 * HOUR)
    assert [found.kept for found in _found(store, tmp_path)] == [None]


def test_removing_leftovers_leaves_what_is_needed(store, tmp_path):
    kept = publish(store, "top", {"a": "2"}, output=tmp_path / "results" / "small" / "top")
    old = publish(store, "old", {"deep/a": "1"})
    work = store.root / "partial" / old.key
    work.mkdir(parents=True)
    work.with_name(f"{old.key}.lease").write_text(json.dumps({"host": HOST, "pid": DEAD}))
    for found in _found(store, tmp_path):
        remove(found, store)
    assert list(store.stored_keys()) == [kept.key]
    assert list((store.root / "partial").iterdir()) == []
    assert list((store.root / "tmp").iterdir()) == []


def test_batches_stay_as_long_as_an_entry_that_was_made_from_them(store, tmp_path):
    batches = Batches(
        store=store, action=Action(stage="s", code="c", spec={}, inputs={}, packages={}), confirm=lambda: None
    )
    for name in ("a" * 64, "b" * 64, "c" * 64, "d" * 64):
        batches.keep(name, lambda file: file.write_text("12345"))
    results = tmp_path / "results" / "small" / "top"
    publish(store, "top", {"a": "1"}, output=results, **{RECORDED: ["a" * 64, "b" * 64]})
    old = publish(store, "top", {"a": "2"}, spec={"n": 1}, **{RECORDED: ["b" * 64, "c" * 64]})
    for path in (store.entry(old.key), *batch_files(store)):
        grow_old(path, 2 * HOUR)

    def listed(**options):
        return {it.key[0]: (it.size, it.kept) for it in _found(store, tmp_path, **options) if it.kind == BATCH}

    of_killed = {"d": (5, "for a week, to resume from")}  # of no entry
    assert listed() == {"c": (5, None)} | of_killed
    assert listed(batches=True) == dict.fromkeys("abc", (5, None)) | of_killed
    for leftover in _found(store, tmp_path):
        remove(leftover, store)
    assert [file.name[0] for file in batch_files(store)] == ["a", "b"]

"""What has happened to results since they were written is found before a run, named, and left to be made again."""

import os
import shutil
import time

import pytest

from dualread.store.link import link
from dualread.store.lock import LOCK_NAME, Lock, read_lock, write_lock
from dualread.store.manifest import MANIFEST_NAME, Action
from dualread.store.mend import mend, mend_copies
from dualread.store.store import Store
from tests.store.entries import publish

_ACTION = Action(stage="grade", code="c0", spec={"n": 1}, inputs={}, packages={})


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def output(store, tmp_path):
    """A linked artifact of the text "result", written a minute ago."""
    with store.scratch(_ACTION.key) as scratch:
        (scratch / "file.txt").write_text("result")
        manifest = store.publish(scratch, _ACTION, input_keys={}, record={})
    link(store.entry(_ACTION.key), manifest, tmp_path / "results/grade")
    then = time.time() - 60
    for path in tmp_path.rglob("*"):
        os.utime(path, (then, then))
    return tmp_path / "results/grade"


def write(path, text):
    path.chmod(0o644)
    path.write_text(text)


def test_what_is_as_it_was_is_left_alone(store, output, tmp_path, capsys, monkeypatch):
    before = (output / MANIFEST_NAME).stat().st_mtime_ns
    monkeypatch.setattr("dualread.store.manifest.sha256_file", None)  # and no file is read
    mend(tmp_path / "results", store)
    assert (output / MANIFEST_NAME).stat().st_mtime_ns == before
    assert capsys.readouterr().err == ""
    mend(tmp_path / "nowhere", store)


@pytest.mark.parametrize("text", ["other!", "short", ""])
def test_a_file_that_was_written_to_is_named_here_and_in_the_store(store, output, tmp_path, capsys, text):
    write(output / "file.txt", text)
    mend(tmp_path / "results", store)
    said = capsys.readouterr().err
    assert f"warning: damaged result: {output / 'file.txt'}: " in said
    assert f"warning: damaged entry of the store: {store.entry(_ACTION.key) / 'file.txt'}: " in said
    assert not (output / MANIFEST_NAME).exists()
    assert store.lookup(_ACTION.key) is None


def test_a_file_replaced_by_an_older_one_is_named_and_the_stores_own_stands(store, output, tmp_path, capsys):
    (output / "file.txt").unlink()
    write_older = output / "file.txt"
    write_older.write_text("older!")
    os.utime(write_older, (1, 1))
    mend(tmp_path / "results", store)
    assert f"{output / 'file.txt'}: sha256" in capsys.readouterr().err
    assert not (output / MANIFEST_NAME).exists()
    assert store.lookup(_ACTION.key) is not None


def test_a_missing_file_and_a_broken_manifest_are_named(store, output, tmp_path, capsys):
    (output / "file.txt").unlink()
    mend(tmp_path / "results", store)
    assert f"{output / 'file.txt'}: missing" in capsys.readouterr().err
    (output / MANIFEST_NAME).write_text("{")
    mend(tmp_path / "results", store)
    assert f"{output / MANIFEST_NAME}: not a manifest" in capsys.readouterr().err
    assert not (output / MANIFEST_NAME).exists()


def test_without_its_entry_a_result_is_read_and_stands(store, output, tmp_path, capsys):
    shutil.rmtree(store.entry(_ACTION.key))
    mend(tmp_path / "results", store)
    assert (output / MANIFEST_NAME).exists()
    assert capsys.readouterr().err == ""


@pytest.fixture
def older(store, output, tmp_path):
    """Another whole result in the place of the one that the last run left, which ended half a minute ago."""
    write_lock(tmp_path / "results", store)
    ended = time.time() - 30
    os.utime(tmp_path / "results" / LOCK_NAME, (ended, ended))
    shutil.rmtree(output)
    other = publish(store, "grade", {"file.txt": "older!"}, spec={"n": 2}, output=output)
    for path in (*output.iterdir(), *store.entry(other.key).iterdir()):
        os.utime(path, (1e9, 1e9))
    return output


def test_a_whole_result_in_the_place_of_the_last_runs_is_named_and_made_again(store, older, tmp_path, capsys):
    mend(tmp_path / "results", store)
    assert f"{older}: an older result (" in capsys.readouterr().err
    assert not (older / MANIFEST_NAME).exists()
    assert len(list(store.stored_keys())) == 2  # both are whole


def _newer(results):
    os.utime(results / "grade" / MANIFEST_NAME)


def _of_the_future(results):
    os.utime(results / LOCK_NAME, (time.time() + 86400,) * 2)


def _of_other_targets(results):
    lock = read_lock(results / LOCK_NAME)
    (results / LOCK_NAME).write_text(Lock(study=lock.study, targets={"other": lock.targets["grade"]}).to_text())


def _none(results):
    (results / LOCK_NAME).unlink()


@pytest.mark.parametrize("change", [_newer, _of_the_future, _of_other_targets, _none])
def test_another_result_than_the_locks_stands_where_that_says_nothing(store, older, tmp_path, capsys, change):
    """A run that was edited and killed made it; a clock was moved back; the lock was of a part of the study."""
    change(tmp_path / "results")
    mend(tmp_path / "results", store)
    assert (older / MANIFEST_NAME).exists()
    assert capsys.readouterr().err == ""


def test_a_broken_lock_is_named_and_stops_nothing(store, older, tmp_path, capsys):
    (tmp_path / "results" / LOCK_NAME).write_text("{")
    mend(tmp_path / "results", store)
    assert f"{tmp_path / 'results' / LOCK_NAME}: not a results.lock" in capsys.readouterr().err
    assert (older / MANIFEST_NAME).exists()


def test_a_time_of_the_future_becomes_now(store, output, tmp_path):
    os.utime(output / MANIFEST_NAME, (time.time() + 86400,) * 2)
    mend(tmp_path / "results", store)
    assert abs((output / MANIFEST_NAME).stat().st_mtime - time.time()) < 60


@pytest.fixture
def tables(tmp_path):
    """Copies of a table that were made a minute ago, and its artifact, which is older."""
    source, copies = tmp_path / "results/tables/main", tmp_path / "tables"
    for folder in (source, copies):
        folder.mkdir(parents=True)
    for name in ("main.tex", "main.csv", MANIFEST_NAME):
        (source / name).write_text("text\n")
        os.utime(source / name, (1e9, 1e9))
    (copies / "main.tex").write_text("% study: mine\ntext\n")
    (copies / "main.csv").write_text("text\n")
    return copies


@pytest.mark.parametrize("text", ["% study: mine\ntex", "% stu", "", "% study: mine\ntext\n\n"])
def test_a_damaged_copy_of_a_table_is_named_and_removed(tables, capsys, text):
    (tables / "main.tex").write_text(text)
    mend_copies(tables, tables.parent / "results/tables", "mine")
    assert f"damaged copy: {tables / 'main.tex'}" in capsys.readouterr().err
    assert list(tables.iterdir()) == []  # one job makes both


def test_whole_copies_and_those_of_another_study_are_left_alone(tables, capsys):
    mend_copies(tables, tables.parent / "results/tables", "mine")
    mend_copies(tables, tables.parent / "results/tables", "another")
    (tables / "main.csv").write_text("damaged")
    mend_copies(tables, tables.parent / "results/tables", "another")
    os.utime(tables / "main.csv", (1e8, 1e8))  # older than the artifact: Snakemake renews it
    mend_copies(tables, tables.parent / "results/tables", "mine")
    assert capsys.readouterr().err == ""
    assert len(list(tables.iterdir())) == 2

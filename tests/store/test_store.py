import errno
import json
import multiprocessing
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from dualread.errors import ArtifactError
from dualread.store import store as module
from dualread.store.key import Action
from dualread.store.manifest import TEMPORARY, MachineError
from dualread.store.record import HOST
from dualread.store.store import Store

_ACTION = Action(stage="grade", code="c0", spec={"n": 1}, inputs={}, packages={})


def _publish(store, text="result", action=_ACTION):
    with store.scratch(action.key) as scratch:
        (scratch / "folder").mkdir()
        (scratch / "folder" / "file.txt").write_text(text)
        return store.publish(scratch, action, input_keys={}, record={"seconds": 1.0})


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def test_a_published_entry_is_found(store):
    assert store.lookup(_ACTION.key) is None
    manifest = _publish(store)
    assert store.lookup(_ACTION.key) == manifest
    assert list(store.stored_keys()) == [_ACTION.key]
    assert store.record(_ACTION.key) == {"seconds": 1.0}
    assert store.entry(_ACTION.key) == store.root / _ACTION.key[:2] / _ACTION.key


def test_keys_are_listed_by_their_start_and_a_path_is_the_start_of_none(store):
    assert list(store.stored_keys()) == []
    key = _publish(store).key
    (store.root / key[:2] / "note").write_text("no key")
    (store.root / "ab").write_text("no folder")
    for start in ("", key[0], key[:2], key[:9], key):
        assert list(store.stored_keys(start)) == [key]
    for start in (f"{key}0", "/etc/passwd", "./results", "..", "?", "*", "**", "\0"):
        assert list(store.stored_keys(start)) == []


def test_others_can_read_the_store_whatever_the_writers_umask_is(store):
    before = os.umask(0o077)
    try:
        _publish(store)
    finally:
        os.umask(before)
    entry = store.entry(_ACTION.key)
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in (entry.parent, entry, *entry.rglob("*")))


@pytest.mark.parametrize("damage", ["missing", "truncated", "no manifest", "broken manifest"])
def test_a_damaged_entry_is_reported_moved_away_and_recomputed(store, damage, capsys):
    _publish(store)
    entry = store.entry(_ACTION.key)
    if damage == "missing":
        (entry / "folder" / "file.txt").unlink()
    elif damage == "truncated":
        os.truncate(entry / "folder" / "file.txt", 2)
    elif damage == "no manifest":
        (entry / "MANIFEST.json").unlink()
    else:
        (entry / "MANIFEST.json").unlink()
        (entry / "MANIFEST.json").write_text("{")
    assert store.lookup(_ACTION.key) is None
    said = capsys.readouterr().err
    assert ("file.txt" if damage in ("missing", "truncated") else "MANIFEST.json") in said
    assert len(list((store.root / "damaged").iterdir())) == 1
    manifest = _publish(store)
    assert store.lookup(_ACTION.key) == manifest


def test_a_temporarily_unreadable_entry_is_not_called_damaged(store, capsys):
    manifest, said = _publish(store), ""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))  # no more files can be opened
    try:
        store.lookup(_ACTION.key)
    except MachineError as error:
        said = str(error)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert said.startswith(
        f"{store.entry(_ACTION.key) / 'MANIFEST.json'}: cannot be read at the moment (Too many open files); "
    )
    assert store.lookup(_ACTION.key) == manifest
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("number", TEMPORARY)
def test_a_temporarily_unreadable_file_is_not_called_damaged(store, number):
    manifest = _publish(store)

    def sha256(path):
        raise OSError(number, os.strerror(number))

    with pytest.raises(MachineError, match=r"folder/file\.txt: cannot be read at the moment"):
        list(manifest.wrong_bytes(store.entry(_ACTION.key), sha256))


def test_an_entry_under_the_wrong_key_is_damaged(store, capsys):
    _publish(store)
    other = "0" * 64
    store.entry(other).parent.mkdir()
    store.entry(_ACTION.key).rename(store.entry(other))
    assert store.lookup(other) is None
    assert f"{store.entry(other)}: holds the entry {_ACTION.key[:8]}" in capsys.readouterr().err


def test_a_second_result_with_the_same_bytes_is_dropped_silently(store, capsys):
    first = _publish(store)
    assert _publish(store) == first
    assert capsys.readouterr().err == ""
    assert list((store.root / "tmp").iterdir()) == []
    assert not (store.root / "differences.jsonl").exists()


def test_a_second_result_with_other_bytes_is_dropped_and_the_difference_is_recorded(store, capsys):
    first = _publish(store, "result")
    assert _publish(store, "another") == first
    assert store.lookup(_ACTION.key) == first
    row = json.loads((store.root / "differences.jsonl").read_text())
    assert (row["key"], row["files"], row["kept"]) == (_ACTION.key, ["folder/file.txt"], first.digest)
    assert "gave different files (folder/file.txt)" in capsys.readouterr().err


def _publish_in(root):
    return _publish(Store(Path(root))).digest


def test_many_processes_publish_one_entry(store):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        digests = pool.map(_publish_in, [str(store.root)] * 6)
    found = store.lookup(_ACTION.key)
    assert found is not None
    assert set(digests) == {found.digest}


def test_scratch_directories_of_ended_processes_are_removed_and_others_kept(store):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    names = {
        "dead": f"{'0' * 64}.{HOST}.{dead.pid}.abc",
        "mine": f"{'0' * 64}.{HOST}.{os.getpid()}.abc",
        "elsewhere": f"{'0' * 64}.{HOST}-other.{dead.pid}.abc",
    }
    for name in names.values():
        (store.root / "tmp" / name).mkdir(parents=True)
        (store.root / "tmp" / name / "half").touch()
    store.remove_stale()
    assert {path.name for path in (store.root / "tmp").iterdir()} == {names["mine"], names["elsewhere"]}


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_store_still_serves_hits(store):
    manifest = _publish(store)
    store.root.chmod(0o555)
    try:
        assert store.lookup(_ACTION.key) == manifest
        with pytest.raises(ArtifactError, match="cannot write into the store"):
            _publish(Store(store.root / "inner"))
    finally:
        store.root.chmod(0o755)


def test_a_full_disk_is_reported_and_leaves_nothing(store, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "settle", full)
    with pytest.raises(ArtifactError, match=r"no space left on the device.*Finished entries are safe"):
        _publish(store)
    assert store.lookup(_ACTION.key) is None
    assert list((store.root / "tmp").iterdir()) == []

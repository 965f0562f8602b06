import json
import threading

import pytest

from dualread.store.copy import copy_entries
from dualread.store.store import Store
from tests.store.entries import publish


@pytest.fixture
def source(tmp_path):
    return Store(tmp_path / "source")


@pytest.fixture
def target(tmp_path):
    return Store(tmp_path / "target")


def _overwrite(path, text):
    path.chmod(0o644)
    path.write_text(text)


def _files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_entry_is_copied_with_everything_and_read_only(source, target):
    manifest = publish(source, "top", {"deep/a": "12345", "empty": ""})
    (copied,) = copy_entries([manifest.key], source, target)
    assert (copied.key, copied.size, copied.problem) == (manifest.key, 5, None)
    assert _files(target.entry(manifest.key)) == _files(source.entry(manifest.key))
    assert target.lookup(manifest.key) == manifest
    assert target.record(manifest.key)["seconds"] == 1.5
    assert not (target.entry(manifest.key) / "deep/a").stat().st_mode & 0o222
    assert list((target.root / "tmp").iterdir()) == []


def test_an_existing_entry_is_not_copied_again(source, target):
    manifest = publish(source, "top", {"a": "1"})
    list(copy_entries([manifest.key], source, target))
    before = (target.entry(manifest.key) / "a").stat().st_ino
    assert [copied.size for copied in copy_entries([manifest.key], source, target)] == [None]
    assert (target.entry(manifest.key) / "a").stat().st_ino == before


def test_a_damaged_entry_is_reported_and_the_others_are_copied(source, target):
    good, bad = publish(source, "good", {"a": "1"}), publish(source, "bad", {"a": "1"})
    _overwrite(source.entry(bad.key) / "a", "2")
    first, second = copy_entries([bad.key, good.key], source, target)
    assert first.problem.startswith(f"{source.entry(bad.key) / 'a'}: sha256 ")
    assert second.problem is None
    assert list(target.stored_keys()) == [good.key]
    assert list((target.root / "tmp").iterdir()) == []


def test_an_entry_with_another_key_or_without_a_manifest_is_refused(source, target):
    manifest = publish(source, "top", {"a": "1"})
    other = "f" * 64
    source.entry(other).parent.mkdir(exist_ok=True)
    source.entry(manifest.key).rename(source.entry(other))
    first, second = copy_entries([other, manifest.key], source, target)
    assert "holds the entry" in first.problem
    assert "cannot be read (No such file or directory)" in second.problem
    assert list(target.stored_keys()) == []


@pytest.mark.parametrize("name", ["../../../out", "/tmp/out"])
def test_a_manifest_cannot_name_a_file_outside_its_entry(source, target, name):
    manifest = publish(source, "top", {"a": "1"})
    path = source.entry(manifest.key) / "MANIFEST.json"
    files = {name: manifest.files["a"]}
    document = {**json.loads(path.read_text()), "files": files}
    document["digest"] = type(manifest)(action=manifest.action, files=files).digest
    _overwrite(path, json.dumps(document))
    (copied,) = copy_entries([manifest.key], source, target)
    assert f"files: {name!r}: " in copied.problem
    assert list(target.stored_keys()) == []


def test_a_truncated_entry_of_the_target_is_replaced(source, target):
    manifest = publish(source, "top", {"a": "12345"})
    list(copy_entries([manifest.key], source, target))
    _overwrite(target.entry(manifest.key) / "a", "1")
    assert [copied.size for copied in copy_entries([manifest.key], source, target)] == [5]
    assert (target.entry(manifest.key) / "a").read_text() == "12345"


def test_several_processes_may_push_at_once(source, target):
    keys = [publish(source, "top", {"a": f"{k}"}, spec={"k": k}).key for k in range(20)]
    problems = []

    def push():
        problems.extend(copied.problem for copied in copy_entries(keys, source, target))

    threads = [threading.Thread(target=push) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == [None] * 60
    assert sorted(target.stored_keys()) == sorted(keys)
    assert all(list(target.lookup(key).wrong_bytes(target.entry(key))) == [] for key in keys)
    assert not (target.root / "differences.jsonl").exists()

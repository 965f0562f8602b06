"""Copies between stores, and the tables of a study that are kept by their keys."""

import errno
import json
import os
import threading

import pytest

from dualread.errors import ArtifactError
from dualread.store.copy import LOCK_NAME, copy_entries, read_lock, restore, write_lock
from dualread.store.graph import damages
from dualread.store.place import find_target
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
    assert list(copy_entries([manifest.key], source, target)) == [5]
    assert _files(target.entry(manifest.key)) == _files(source.entry(manifest.key))
    assert target.lookup(manifest.key) == manifest
    assert target.record(manifest.key)["seconds"] == 1.5
    assert not (target.entry(manifest.key) / "deep/a").stat().st_mode & 0o222
    assert list((target.root / "tmp").iterdir()) == []


def test_an_existing_entry_is_not_copied_again(source, target):
    manifest = publish(source, "top", {"a": "1"})
    list(copy_entries([manifest.key], source, target))
    before = (target.entry(manifest.key) / "a").stat().st_ino
    assert list(copy_entries([manifest.key], source, target)) == [None]
    assert (target.entry(manifest.key) / "a").stat().st_ino == before


def test_a_damaged_entry_is_reported_and_the_others_are_copied(source, target):
    good, bad = publish(source, "good", {"a": "1"}), publish(source, "bad", {"a": "1"})
    _overwrite(source.entry(bad.key) / "a", "2")
    first, second = copy_entries([bad.key, good.key], source, target)
    assert first.startswith(f"{source.entry(bad.key) / 'a'}: sha256 ")
    assert second == 1
    assert list(target.stored_keys()) == [good.key]
    assert list((target.root / "tmp").iterdir()) == []


def test_a_file_that_cannot_be_read_is_reported_and_a_full_disk_ends_the_copy(source, target, monkeypatch):
    good, bad = publish(source, "good", {"a": "1"}), publish(source, "bad", {"a": "1"})
    (source.entry(bad.key) / "a").unlink()
    lacking = f"{source.entry(bad.key) / 'a'}: cannot be read (No such file or directory)"
    assert list(copy_entries([bad.key], source, target)) == [lacking]
    for files in ((), (str(source.entry(good.key) / "a"), None, "there")):  # as write(2) and sendfile(2) name them

        def full(*_, files=files):
            raise OSError(errno.ENOSPC, "No space left on device", *files)

        monkeypatch.setattr("shutil.copyfile", full)
        with pytest.raises(ArtifactError, match="no space left on the device"):
            list(copy_entries([good.key], source, target))
    assert list((target.root / "tmp").iterdir()) == []


def test_an_entry_with_another_key_or_without_a_manifest_is_refused(source, target):
    manifest = publish(source, "top", {"a": "1"})
    other = "f" * 64
    source.entry(other).parent.mkdir(exist_ok=True)
    source.entry(manifest.key).rename(source.entry(other))
    first, second = copy_entries([other, manifest.key], source, target)
    assert "holds the entry" in first
    assert "cannot be read (No such file or directory)" in second
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
    assert f"files: {name!r}: " in copied
    assert list(target.stored_keys()) == []


def test_a_truncated_entry_of_the_target_is_replaced(source, target):
    manifest = publish(source, "top", {"a": "12345"})
    list(copy_entries([manifest.key], source, target))
    _overwrite(target.entry(manifest.key) / "a", "1")
    assert list(copy_entries([manifest.key], source, target)) == [5]
    assert (target.entry(manifest.key) / "a").read_text() == "12345"


def test_several_processes_may_push_at_once(source, target):
    keys = [publish(source, "top", {"a": f"{k}"}, spec={"k": k}).key for k in range(20)]
    said = []

    def push():
        said.extend(copy_entries(keys, source, target))

    threads = [threading.Thread(target=push) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(said), {*said} <= {1, 2, None}) == (60, True)
    assert sorted(target.stored_keys()) == sorted(keys)
    assert all(list(target.lookup(key).wrong_bytes(target.entry(key))) == [] for key in keys)
    assert not (target.root / "differences.jsonl").exists()


TEX = "\\begin{tabular}\n"


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results" / "store")


@pytest.fixture
def study(store, tmp_path):
    """A table made from metrics, and the lock that the workflow would write."""
    folder = tmp_path / "results" / "small"
    metrics = publish(store, "collect_metrics", {"m": "1"}, output=folder / "metrics")
    files = {"main.tex": TEX, "main.csv": "1"}
    publish(store, "build_table", files, inputs={"metrics": metrics}, output=folder / "tables" / "main")
    publish(store, "draw_figure", {"roc.pdf": "2"}, output=folder / "figures" / "roc")
    return folder


def test_a_lock_holds_the_key_and_digest_of_every_artifact(store, study):
    lock = write_lock(study, store)
    assert list(lock.targets) == ["figures/roc", "metrics", "tables/main"]
    table = json.loads((study / "tables" / "main" / "MANIFEST.json").read_text())
    assert lock.targets["tables/main"] == {"key": table["key"], "digest": table["digest"]}
    assert read_lock(study / LOCK_NAME) == lock
    assert len((study / LOCK_NAME).read_text().splitlines()) == 3 + 2  # one line per target, a first and a last line


def test_a_lock_says_what_is_of_an_earlier_configuration_and_what_was_selected(store, study, tmp_path):
    assert not any("outdated" in row for row in write_lock(study, store).targets.values())
    lock = write_lock(study, store, outdated={str(study / "tables/main")}, selection="seeds: 17")
    assert read_lock(study / LOCK_NAME) == lock
    assert {name for name, row in lock.targets.items() if row.get("outdated")} == {"tables/main"}
    assert '"selection": "seeds: 17"' in (study / LOCK_NAME).read_text().splitlines()[0]
    said = list(restore(lock, store, root=tmp_path / "restored"))
    assert [line.startswith("tables/main: ") for line in said if "of an earlier configuration" in line] == [True]


def test_an_unchanged_lock_is_left_alone(store, study):
    write_lock(study, store)
    os.utime(study / LOCK_NAME, (1e9, 1e9))
    before = (study / LOCK_NAME).stat()
    write_lock(study, store)
    after = (study / LOCK_NAME).stat()
    assert (after.st_ino, after.st_mtime) == (before.st_ino, before.st_mtime)


@pytest.mark.parametrize(
    "damage",
    [os.mkfifo, lambda path: path.symlink_to(path.name), lambda path: path.write_bytes(b"\xff")],
    ids=["a pipe", "a link to itself", "no text"],
)
def test_a_damaged_lock_is_written_anew(store, study, damage):
    """A pipe was read until somebody wrote to it, at the end of every run."""
    lock = write_lock(study, store)
    (study / LOCK_NAME).unlink()
    damage(study / LOCK_NAME)
    write_lock(study, store)
    assert read_lock(study / LOCK_NAME) == lock


def test_tables_are_restored_from_a_pulled_store(store, study, tmp_path):
    lock = write_lock(study, store)
    pulled = Store(tmp_path / "other" / "results" / "store")
    assert all(isinstance(size, int) for size in copy_entries(lock.target_keys, store, pulled))
    root = tmp_path / "other" / "restored"
    lines = list(restore(lock, pulled, root=root))
    assert (root / "tables" / "main.tex").read_text() == "% study: small (restored from a lock)\n" + TEX
    assert (root / "tables" / "main.csv").read_text() == "1"
    assert (root / "figures" / "roc.pdf").read_text() == "2"
    assert lines[1].startswith(f"tables/main: {lock.targets['tables/main']['key'][:8]}, code cccccccc")
    assert lines[2].startswith(f"{root / 'results' / 'small'}: 3 of 3 locked artifacts")
    # The copies are those of these artifacts.
    found = find_target(str(root / "tables" / "main.tex"), pulled)
    assert found.manifest.key == lock.targets["tables/main"]["key"]
    assert list(damages(found, pulled)) == []
    assert list(restore(lock, pulled, root=root)) == lines  # again: the same


def test_the_inputs_of_tables_are_not_needed(store, study, tmp_path):
    lock = write_lock(study, store)
    pulled = Store(tmp_path / "store")
    shown = [lock.targets[name]["key"] for name in ("tables/main", "figures/roc")]
    list(copy_entries(shown, store, pulled))
    assert "2 of 3 locked artifacts" in list(restore(lock, pulled, root=tmp_path / "restored"))[2]


def test_a_restore_that_was_killed_early_can_be_repeated(store, study, tmp_path):
    lock = write_lock(study, store)
    folder = tmp_path / "back/results" / lock.study
    folder.mkdir(parents=True)
    (folder / f".{LOCK_NAME}.1").write_text(lock.to_text()[:10])
    list(restore(lock, store, root=tmp_path / "back"))
    assert read_lock(folder / LOCK_NAME) == lock

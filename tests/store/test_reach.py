import shutil

import pytest

from dualread.errors import ArtifactError
from dualread.store.reach import keys_below, reachable
from dualread.store.store import Store
from tests.store.entries import publish


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results" / "store")


def test_every_input_is_reached_once(store):
    raw = publish(store, "raw", {"a": "1"})
    left, right = (publish(store, name, {"a": name}, inputs={"raw": raw}) for name in ("left", "right"))
    top = publish(store, "top", {"a": "2"}, inputs={"left": left, "right": right})
    publish(store, "other", {"a": "3"})
    found = reachable([top.key], store)
    assert sorted(found) == sorted(manifest.key for manifest in (raw, left, right, top))


def test_a_missing_entry_is_reached_but_not_its_inputs(store):
    raw = publish(store, "raw", {"a": "1"})
    middle = publish(store, "middle", {"a": "1"}, inputs={"raw": raw})
    top = publish(store, "top", {"a": "2"}, inputs={"middle": middle})
    shutil.rmtree(store.entry(middle.key))
    assert sorted(reachable([top.key], store)) == sorted([top.key, middle.key])


def test_an_entry_with_unknown_inputs_is_refused(store):
    raw = publish(store, "raw", {"a": "1"})
    path = store.entry(raw.key) / "MANIFEST.json"
    path.chmod(0o644)
    path.write_text("{")
    with pytest.raises(ArtifactError, match=r"MANIFEST.json: cannot be read as a manifest"):
        reachable([raw.key], store)


def test_entries_of_a_store_inside_a_results_folder_are_not_its_artifacts(store, tmp_path):
    study = publish(store, "raw", {"a": "1"}, output=tmp_path / "results" / "small" / "raw")
    publish(store, "other", {"a": "3"})
    assert keys_below(tmp_path / "results", store) == {study.key}


def test_an_unreadable_folder_does_not_count_as_empty(store, tmp_path, monkeypatch):
    def scandir(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.scandir", scandir)
    with pytest.raises(ArtifactError, match=rf"{tmp_path}: cannot be read \(Permission denied\)"):
        keys_below(tmp_path, store)

import json
import os
import subprocess

import pytest

from dualread.errors import ArtifactError
from dualread.store import link as module
from dualread.store.key import Action
from dualread.store.link import link
from dualread.store.store import Store


def _store(root, n, **files):
    store = Store(root / "store")
    action = Action(stage="grade", code="c0", spec={"n": n}, inputs={}, packages={})
    with store.scratch(action.key) as scratch:
        for name, text in files.items():
            path = scratch / name.replace("__", "/")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        manifest = store.publish(scratch, action, input_keys={}, record={})
    return store.entry(action.key), manifest


def test_files_are_links_and_the_manifest_is_a_copy(tmp_path):
    entry, manifest = _store(tmp_path, 1, a="1", images__b="2")
    output = tmp_path / "results" / "x"
    link(entry, manifest, output)
    assert (output / "a").samefile(entry / "a")
    assert (output / "images" / "b").samefile(entry / "images" / "b")
    documents = [json.loads((folder / "MANIFEST.json").read_bytes()) for folder in (output, entry)]
    assert documents[0] == {**documents[1], "place": str(output)}
    assert not (output / "MANIFEST.json").samefile(entry / "MANIFEST.json")
    assert not (output / "RECORD.json").exists()


def test_a_second_link_renews_only_the_manifest(tmp_path):
    entry, manifest = _store(tmp_path, 1, a="1")
    output = tmp_path / "x"
    link(entry, manifest, output)
    os.utime(output / "MANIFEST.json", ns=(0, 0))
    before = (output / "a").stat()
    link(entry, manifest, output)
    after = (output / "a").stat()
    assert (after.st_ino, after.st_ctime_ns) == (before.st_ino, before.st_ctime_ns)
    assert (output / "MANIFEST.json").stat().st_mtime_ns > 0


def test_temporary_links_of_running_processes_are_kept_and_others_removed(tmp_path):
    entry, manifest = _store(tmp_path, 1, a="1")
    output = tmp_path / "x"
    output.mkdir()
    dead = subprocess.Popen(["true"])
    dead.wait()
    living, left = (output / f".a.{pid}.link" for pid in (os.getppid(), dead.pid))
    for path in (living, left):
        os.link(entry / "a", path)
    link(entry, manifest, output)
    assert living.exists()
    assert not left.exists()


def test_an_artifact_replaces_an_earlier_one(tmp_path):
    first, first_manifest = _store(tmp_path, 1, a="1", images__old="2")
    second, second_manifest = _store(tmp_path, 2, a="3", images__new="4")
    output = tmp_path / "x"
    link(first, first_manifest, output)
    link(second, second_manifest, output)
    names = {path.relative_to(output).as_posix() for path in output.rglob("*") if path.is_file()}
    assert names == {"a", "images/new", "MANIFEST.json"}
    assert (output / "a").read_text() == "3"
    assert (first / "a").read_text() == "1"  # the link was replaced, not written through


def test_a_damaged_file_of_equal_size_is_linked_again(tmp_path):
    entry, manifest = _store(tmp_path, 1, a="1")
    output = tmp_path / "x"
    link(entry, manifest, output)
    (output / "a").unlink()
    (output / "a").write_text("2")
    link(entry, manifest, output)
    assert (output / "a").read_text() == "1"


def test_artifacts_below_and_users_files_are_left_alone(tmp_path, capsys):
    entry, manifest = _store(tmp_path, 1, a="1")
    output = tmp_path / "metrics"
    below_entry, below = _store(tmp_path, 2, b="2")
    link(below_entry, below, output / "qwen" / "rlvr")
    (output / "notes.txt").write_text("mine")
    link(entry, manifest, output)
    assert (output / "qwen" / "rlvr" / "b").read_text() == "2"
    assert (output / "notes.txt").read_text() == "mine"
    assert "notes.txt is not part of this artifact" in capsys.readouterr().err


def test_a_symbolic_link_is_used_if_no_hard_link_is_possible(tmp_path, monkeypatch):
    entry, manifest = _store(tmp_path, 1, a="1")

    def across_devices(source, target):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(module.os, "link", across_devices)
    output = tmp_path / "x"
    for _ in range(2):
        link(entry, manifest, output)
        assert (output / "a").is_symlink()
        assert (output / "a").read_text() == "1"


def test_a_link_that_fails_half_way_leaves_no_manifest(tmp_path, monkeypatch):
    first, first_manifest = _store(tmp_path, 1, a="1", b="1")
    second, second_manifest = _store(tmp_path, 2, a="2", b="2")
    output = tmp_path / "x"
    link(first, first_manifest, output)
    real = module._link_file

    def fails_at_b(source, target):
        if target.name == "b":
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr(module, "_link_file", fails_at_b)
    with pytest.raises(ArtifactError, match="cannot write the result here"):
        link(second, second_manifest, output)
    assert not (output / "MANIFEST.json").exists()


def test_something_in_place_of_the_output_is_reported(tmp_path):
    entry, manifest = _store(tmp_path, 1, a="1")
    (tmp_path / "x").write_text("a file")
    with pytest.raises(ArtifactError, match=r"/x: cannot write the result here.*is safe in"):
        link(entry, manifest, tmp_path / "x")

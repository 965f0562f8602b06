"""What is below results/ is linked to the store; changes since are found before a run, reported, and repaired."""

import errno
import json
import os
import shutil
import subprocess
import time
from dataclasses import replace

import pytest

from dualread.errors import ArtifactError
from dualread.store import results as module
from dualread.store.digest import MANIFEST_NAME, sha256_file
from dualread.store.manifest import read_manifest
from dualread.store.results import link, repair, wrong_copies
from dualread.store.store import Store
from tests.store.entries import publish


def _store(root, n, **files):
    store = Store(root / "store")
    manifest = publish(store, "grade", {name.replace("__", "/"): text for name, text in files.items()}, spec={"n": n})
    return store.entry(manifest.key), manifest


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


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def key(store, tmp_path):
    """The key of a linked artifact of the text "result"."""
    return publish(store, "grade", {"file.txt": "result"}, output=tmp_path / "results/grade").key


@pytest.fixture
def fresh(key, tmp_path):
    return tmp_path / "results/grade"


@pytest.fixture
def output(fresh, tmp_path):
    """The artifact, written a minute ago."""
    then = time.time() - 60
    for path in tmp_path.rglob("*"):
        os.utime(path, (then, then))
    return fresh


def write(path, text):
    path.chmod(0o644)
    path.write_text(text)


def test_unchanged_results_are_left_alone(store, fresh, tmp_path, capsys, monkeypatch):
    before = (fresh / MANIFEST_NAME).stat().st_mtime_ns
    monkeypatch.setattr("dualread.store.digest.sha256_file", None)  # no file is read
    assert repair(tmp_path / "results", store) == {str(fresh): read_manifest(fresh / MANIFEST_NAME)}
    assert (fresh / MANIFEST_NAME).stat().st_mtime_ns == before
    assert capsys.readouterr().err == ""
    assert repair(tmp_path / "nowhere", store) == {}


@pytest.mark.parametrize("text", ["other!", "short"])
def test_damage_is_found_even_if_the_mtime_is_unchanged(store, key, output, tmp_path, capsys, text):
    before = (output / "file.txt").stat().st_mtime
    write(output / "file.txt", text)
    os.utime(output / "file.txt", (before, before))
    repair(tmp_path / "results", store)
    assert f"damaged result: {output / 'file.txt'}: " in capsys.readouterr().err
    assert store.lookup(key) is None


def test_an_artifact_copied_over_another_is_reported(store, output, tmp_path, capsys):
    other = tmp_path / "results/other"
    shutil.copytree(output, other)
    repair(tmp_path / "results", store)
    assert f"{other}: was copied here from {output}" in capsys.readouterr().err
    assert not (other / MANIFEST_NAME).exists()
    assert (output / MANIFEST_NAME).exists()


def dangle(path):
    path.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("name", "replace"),
    [("file.txt", os.mkdir), (MANIFEST_NAME, os.mkfifo), (MANIFEST_NAME, dangle)],
)
def test_what_is_no_file_is_reported_without_blocking(store, output, tmp_path, capsys, name, replace):
    (output / name).unlink()
    replace(output / name)
    repair(tmp_path / "results", store)
    assert f"{output / name}: " in capsys.readouterr().err
    assert not os.path.lexists(output / MANIFEST_NAME)


def older_file(path):
    path.write_text("older!")
    os.utime(path, (1, 1))


@pytest.mark.parametrize("replace", [lambda path: None, os.mkfifo, dangle, older_file])
def test_a_file_that_was_deleted_or_replaced_is_linked_again_and_nothing_is_newer(
    store, key, output, tmp_path, capsys, replace
):
    written = (output / MANIFEST_NAME).stat().st_mtime_ns
    (output / "file.txt").unlink()
    replace(output / "file.txt")
    repair(tmp_path / "results", store)
    said = capsys.readouterr().err
    assert f"warning: damaged result: {output / 'file.txt'}: " in said
    assert f"warning: linked {output} again from the store" in said
    assert (output / "file.txt").samefile(store.entry(key) / "file.txt")
    assert (output / MANIFEST_NAME).stat().st_mtime_ns == written
    repair(tmp_path / "results", store)
    assert capsys.readouterr().err == ""


def damaged(entry):
    before = (entry / "file.txt").stat()
    write(entry / "file.txt", "tluser")
    os.utime(entry / "file.txt", ns=(before.st_atime_ns, before.st_mtime_ns))


def without_the_file(entry):
    (entry / "file.txt").unlink()


def with_other_files(entry):
    """Of the same key, as where another machine computed it."""
    manifest = read_manifest(entry / MANIFEST_NAME)
    write(entry / "file.txt", "other!")
    other = replace(
        manifest, files={"file.txt": {**manifest.files["file.txt"], "sha256": sha256_file(entry / "file.txt")}}
    )
    write(entry / MANIFEST_NAME, other.to_bytes().decode())


@pytest.mark.parametrize("change", [damaged, without_the_file, with_other_files, shutil.rmtree])
def test_a_file_is_linked_again_only_from_a_whole_entry(store, key, output, tmp_path, capsys, change):
    (output / "file.txt").unlink()
    change(store.entry(key))
    repair(tmp_path / "results", store)
    assert f"To have it now, run `snakemake --cores 1 {output / MANIFEST_NAME}`" in capsys.readouterr().err
    assert [path.name for path in output.iterdir()] == []


def test_a_broken_manifest_is_reported(store, output, tmp_path, capsys):
    (output / MANIFEST_NAME).write_text("{")
    repair(tmp_path / "results", store)
    assert f"{output / MANIFEST_NAME}: not a manifest" in capsys.readouterr().err
    assert not (output / MANIFEST_NAME).exists()


def test_an_intact_result_restores_its_missing_entry(store, key, output, tmp_path, capsys):
    expected = store.lookup(key)
    shutil.rmtree(store.entry(key))
    repair(tmp_path / "results", store)
    assert (output / MANIFEST_NAME).exists()
    assert f"the store lacked 1 entries, such as {store.entry(key)}; " in capsys.readouterr().err
    assert store.lookup(key) == expected
    assert (store.entry(key) / MANIFEST_NAME).read_bytes() == expected.to_bytes()  # and names no place
    assert (output / "file.txt").samefile(store.entry(key) / "file.txt")
    assert list((store.root / "tmp").iterdir()) == []


def test_a_damaged_result_does_not_become_an_entry(store, key, output, tmp_path, capsys):
    shutil.rmtree(store.entry(key))
    write(output / "file.txt", "tluser")
    repair(tmp_path / "results", store)
    assert f"damaged result: {output / 'file.txt'}: sha256 " in capsys.readouterr().err
    assert not (output / MANIFEST_NAME).exists()
    assert store.lookup(key) is None


def test_an_entry_on_another_device_is_a_copy(store, key, output, tmp_path, monkeypatch):
    expected = store.lookup(key)
    shutil.rmtree(store.entry(key))

    def link(source, target):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr("os.link", link)
    repair(tmp_path / "results", store)
    copied = store.entry(key) / "file.txt"
    assert (copied.read_text(), copied.samefile(output / "file.txt")) == ("result", False)
    assert store.lookup(key) == expected


def test_a_result_without_an_entry_is_kept_if_the_store_cannot_be_written(store, key, output, tmp_path, capsys):
    shutil.rmtree(store.entry(key))
    shutil.rmtree(store.root / "tmp")
    (store.root / "tmp").write_text("a file")
    repair(tmp_path / "results", store)
    assert (output / MANIFEST_NAME).exists()
    assert capsys.readouterr().err == ""
    assert store.lookup(key) is None


def test_a_future_time_becomes_the_current_time(store, output, tmp_path):
    os.utime(output / MANIFEST_NAME, (time.time() + 86400,) * 2)
    repair(tmp_path / "results", store)
    assert abs((output / MANIFEST_NAME).stat().st_mtime - time.time()) < 60


def test_a_copy_is_wrong_if_it_differs_from_its_source_or_one_of_them_is_not_there(tmp_path):
    tex, csv, gone = (tmp_path / name for name in ("a.tex", "a.csv", "b.csv"))
    sources = {tex: tmp_path / "made.tex", csv: tmp_path / "made.csv", gone: tmp_path / "gone.csv"}
    for source in (tmp_path / "made.tex", tmp_path / "made.csv"):
        source.write_text("1")
    (tmp_path / MANIFEST_NAME).touch()
    tex.write_text("% study: mine\n1")
    csv.write_text("1")
    assert wrong_copies(sources, "% study: mine") == []
    assert wrong_copies(sources, "% study: another") == [tex]
    csv.write_text("2")
    assert wrong_copies(sources, "% study: mine") == [csv]
    csv.unlink()
    assert wrong_copies(sources, "% study: mine") == [csv]
    csv.write_text("1")
    tex.write_text("% study: mine\n1\n")
    assert wrong_copies(sources, "% study: mine") == [tex]
    (tmp_path / "made.csv").unlink()  # it is made again, and then copied
    tex.write_text("% study: mine\n1")
    assert wrong_copies(sources, "% study: mine") == [csv]
    (tmp_path / MANIFEST_NAME).unlink()  # its job was to make it again, and failed
    assert wrong_copies(sources, "% study: mine") == [tex, csv]

"""Changes to results since they were written are found before a run, reported, and repaired or recomputed."""

import errno
import os
import shutil
import time
from dataclasses import replace

import pytest

from dualread.errors import ArtifactError
from dualread.store.digest import MANIFEST_NAME, sha256_file
from dualread.store.key import Action
from dualread.store.link import link
from dualread.store.manifest import read_manifest
from dualread.store.repair import check_folders, mend, mend_copies, wrong_copies
from dualread.store.store import Store

_ACTION = Action(stage="grade", code="c0", spec={"n": 1}, inputs={}, packages={})


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def fresh(store, tmp_path):
    """A linked artifact of the text "result"."""
    with store.scratch(_ACTION.key) as scratch:
        (scratch / "file.txt").write_text("result")
        manifest = store.publish(scratch, _ACTION, input_keys={}, record={})
    link(store.entry(_ACTION.key), manifest, tmp_path / "results/grade")
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
    assert mend(tmp_path / "results", store) == {str(fresh): read_manifest(fresh / MANIFEST_NAME)}
    assert (fresh / MANIFEST_NAME).stat().st_mtime_ns == before
    assert capsys.readouterr().err == ""
    assert mend(tmp_path / "nowhere", store) == {}


@pytest.mark.parametrize("text", ["other!", "short"])
def test_damage_is_found_even_if_the_mtime_is_unchanged(store, output, tmp_path, capsys, text):
    before = (output / "file.txt").stat().st_mtime
    write(output / "file.txt", text)
    os.utime(output / "file.txt", (before, before))
    mend(tmp_path / "results", store)
    assert f"damaged result: {output / 'file.txt'}: " in capsys.readouterr().err
    assert store.lookup(_ACTION.key) is None


def test_damage_is_found_even_if_the_manifest_has_a_future_time(store, output, tmp_path, capsys):
    write(output / "file.txt", "other!")
    os.utime(output / MANIFEST_NAME, (time.time() + 86400,) * 2)
    mend(tmp_path / "results", store)
    assert f"damaged result: {output / 'file.txt'}: " in capsys.readouterr().err


def test_an_artifact_copied_over_another_is_reported(store, output, tmp_path, capsys):
    other = tmp_path / "results/other"
    shutil.copytree(output, other)
    mend(tmp_path / "results", store)
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
    mend(tmp_path / "results", store)
    assert f"{output / name}: " in capsys.readouterr().err
    assert not os.path.lexists(output / MANIFEST_NAME)


def older_file(path):
    path.write_text("older!")
    os.utime(path, (1, 1))


@pytest.mark.parametrize("replace", [lambda path: None, os.mkfifo, dangle, older_file])
def test_a_file_that_was_deleted_or_replaced_is_linked_again_and_nothing_is_newer(
    store, output, tmp_path, capsys, replace
):
    written = (output / MANIFEST_NAME).stat().st_mtime_ns
    (output / "file.txt").unlink()
    replace(output / "file.txt")
    mend(tmp_path / "results", store)
    said = capsys.readouterr().err
    assert f"warning: damaged result: {output / 'file.txt'}: " in said
    assert f"warning: linked {output} again from the store" in said
    assert (output / "file.txt").samefile(store.entry(_ACTION.key) / "file.txt")
    assert (output / MANIFEST_NAME).stat().st_mtime_ns == written
    mend(tmp_path / "results", store)
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
def test_a_file_is_linked_again_only_from_a_whole_entry(store, output, tmp_path, capsys, change):
    (output / "file.txt").unlink()
    change(store.entry(_ACTION.key))
    mend(tmp_path / "results", store)
    assert f"To have it now, run `snakemake --cores 1 {output / MANIFEST_NAME}`" in capsys.readouterr().err
    assert [path.name for path in output.iterdir()] == []


def test_a_broken_manifest_is_reported(store, output, tmp_path, capsys):
    (output / MANIFEST_NAME).write_text("{")
    mend(tmp_path / "results", store)
    assert f"{output / MANIFEST_NAME}: not a manifest" in capsys.readouterr().err
    assert not (output / MANIFEST_NAME).exists()


def test_something_else_than_a_folder_is_refused(tmp_path):
    check_folders(tmp_path, tmp_path / "not there yet")
    (tmp_path / "file").touch()
    dangle(tmp_path / "link")
    for name in ("file", "link"):
        with pytest.raises(ArtifactError, match=f"{name}: is not a folder"):
            check_folders(tmp_path, tmp_path / name)


def test_an_intact_result_restores_its_missing_entry(store, output, tmp_path, capsys):
    expected = store.lookup(_ACTION.key)
    shutil.rmtree(store.entry(_ACTION.key))
    mend(tmp_path / "results", store)
    assert (output / MANIFEST_NAME).exists()
    assert f"the store lacked 1 entries, such as {store.entry(_ACTION.key)}; " in capsys.readouterr().err
    assert store.lookup(_ACTION.key) == expected
    assert (store.entry(_ACTION.key) / MANIFEST_NAME).read_bytes() == expected.to_bytes()  # and names no place
    assert (output / "file.txt").samefile(store.entry(_ACTION.key) / "file.txt")
    assert list((store.root / "tmp").iterdir()) == []


def test_a_damaged_result_does_not_become_an_entry(store, output, tmp_path, capsys):
    shutil.rmtree(store.entry(_ACTION.key))
    write(output / "file.txt", "tluser")
    mend(tmp_path / "results", store)
    assert f"damaged result: {output / 'file.txt'}: sha256 " in capsys.readouterr().err
    assert not (output / MANIFEST_NAME).exists()
    assert store.lookup(_ACTION.key) is None


def test_an_entry_on_another_device_is_a_copy(store, output, tmp_path, monkeypatch):
    expected = store.lookup(_ACTION.key)
    shutil.rmtree(store.entry(_ACTION.key))

    def link(source, target):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr("os.link", link)
    mend(tmp_path / "results", store)
    copied = store.entry(_ACTION.key) / "file.txt"
    assert (copied.read_text(), copied.samefile(output / "file.txt")) == ("result", False)
    assert store.lookup(_ACTION.key) == expected


def test_a_result_without_an_entry_is_kept_if_the_store_cannot_be_written(store, output, tmp_path, capsys):
    shutil.rmtree(store.entry(_ACTION.key))
    shutil.rmtree(store.root / "tmp")
    (store.root / "tmp").write_text("a file")
    mend(tmp_path / "results", store)
    assert (output / MANIFEST_NAME).exists()
    assert capsys.readouterr().err == ""
    assert store.lookup(_ACTION.key) is None


def test_a_future_time_becomes_the_current_time(store, output, tmp_path):
    os.utime(output / MANIFEST_NAME, (time.time() + 86400,) * 2)
    mend(tmp_path / "results", store)
    assert abs((output / MANIFEST_NAME).stat().st_mtime - time.time()) < 60


@pytest.fixture(params=["tables", "figures"])
def copies(tmp_path, request):
    """Copies of a table or a figure, one minute old, and the older artifact that they are copies of."""
    source, copies = tmp_path / "results/mine" / request.param / "main", tmp_path / request.param
    for folder in (source, copies):
        folder.mkdir(parents=True)
    texts = {"main.tex": "text\n", "main.csv": "mine,1\n", MANIFEST_NAME: "{}"}
    if request.param == "figures":
        texts = {"main.pdf": "text\n", "main.png": "image", "main.csv": "study,value\nmine,1\n", MANIFEST_NAME: "{}"}
    for name, text in texts.items():
        (source / name).write_text(text)
        os.utime(source / name, (1e9, 1e9))
        if name != MANIFEST_NAME:
            (copies / name).write_text(("% study: mine\n" if name.endswith(".tex") else "") + text)
    return copies


def first(copies):
    return copies / ("main.tex" if copies.name == "tables" else "main.pdf")


def mend_mine(copies, study="mine"):
    mend_copies(copies.parent, copies.parent / "results" / study, study)


@pytest.mark.parametrize(
    "text",
    [
        "% study: mine\ntex",
        "% stu",
        "",
        "% study: mine\ntext\n\n",
        "% study: mind\ntext\n",
    ],
)
def test_a_damaged_copy_is_reported_and_removed(copies, capsys, text):
    first(copies).write_text(text)
    mend_mine(copies)
    assert f"damaged copy: {first(copies)}" in capsys.readouterr().err
    assert list(copies.iterdir()) == []  # one job makes all of them


@pytest.mark.parametrize("text", [None, "damaged"])
def test_copies_that_no_job_requests_are_checked_as_well(copies, capsys, text):
    (copies / "main.csv").unlink()
    if text:
        (copies / "main.csv").write_text(text)
        os.utime(copies / "main.csv", (1, 1))  # older than the artifact, but no copy of it
    mend_mine(copies)
    assert f"damaged copy: {copies / 'main.csv'}: " in capsys.readouterr().err
    assert not first(copies).exists()


def test_intact_copies_and_those_of_another_study_are_left_alone(copies, capsys):
    mend_mine(copies)
    shutil.copytree(copies.parent / "results/mine", copies.parent / "results/another")
    for source in (copies.parent / "results/another" / copies.name / "main").iterdir():
        source.write_text("of another\n")
    os.utime(copies.parent / "results/another" / copies.name / "main" / MANIFEST_NAME, (1e9, 1e9))
    mend_mine(copies, "another")
    (copies / "main.csv").write_text("study\nmine,damaged")
    mend_mine(copies, "another")
    os.utime(first(copies), (1e8, 1e8))  # older than the artifact: Snakemake renews it
    mend_mine(copies)
    assert capsys.readouterr().err == ""
    assert first(copies).exists()


def test_a_copy_without_its_artifact_is_removed_unless_it_is_of_another_study(copies, capsys):
    mend_mine(copies, "another")
    (copies / "own.tex").write_text("of a person")
    (copies / "own.pdf").write_text("of a person")
    shutil.rmtree(copies.parent / "results")
    mend_mine(copies, "another")
    assert capsys.readouterr().err == ""
    mend_mine(copies)
    said = capsys.readouterr().err
    assert "warning: damaged copy: " in said
    assert f"{first(copies)}: its artifact " in said
    assert " is gone; removed it" in said
    assert {path.name for path in copies.iterdir()} == {"own.tex", "own.pdf"}


def test_a_copy_is_wrong_if_it_differs_from_its_source_or_has_none(tmp_path):
    tex, csv, gone = (tmp_path / name for name in ("a.tex", "a.csv", "b.csv"))
    sources = {tex: tmp_path / "made.tex", csv: tmp_path / "made.csv", gone: tmp_path / "made.csv"}
    for source in sources.values():
        source.write_text("1")
    tex.write_text("% study: mine\n1")
    csv.write_text("1")
    assert list(wrong_copies(sources, "% study: mine")) == []
    assert list(wrong_copies(sources, "% study: another")) == [tex]
    csv.write_text("2")
    assert list(wrong_copies(sources, "% study: mine")) == [csv]
    csv.write_text("1")
    (tmp_path / "made.csv").unlink()  # nothing says that the copy is right
    assert list(wrong_copies(sources, "% study: mine")) == [csv]

"""Commands find a store, and a store knows the folders that use it: gc in one never removes what another needs."""

import errno
import json
import shutil
from pathlib import Path

import pytest

from dualread.apps.main import main
from dualread.errors import ArtifactError, ConfigError
from dualread.store.copy import restore, write_lock
from dualread.store.gc import leftovers
from dualread.store.place import read_study, register, registered, store_of, write_study
from dualread.store.record import HOST
from dualread.store.store import Store
from tests.store.entries import HOUR, grow_old, publish


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def study(name, store):
    write_study(Path("results", name), Store(Path(store)), settings={"a": 1})
    Path("tables").mkdir(exist_ok=True)
    Path("tables/main.tex").write_text(f"% study: {name}\n")
    Path("tables/main.csv").write_text("")


def test_the_default_is_the_store_beside_the_studies():
    assert store_of(None, None).root == Path("results/store")
    assert store_of("results/micro/metrics", None).root == Path("results/store")


def test_a_target_names_its_study_and_the_study_its_store():
    study("b", "/elsewhere/other")
    study("a", "/elsewhere/store")
    for target in ("results/a", "results/a/metrics/MANIFEST.json", "tables/main.tex", "tables/main.csv"):
        assert store_of(target, None).root == Path("/elsewhere/store")
        assert store_of(target, Path("given")).root == Path("given")


def test_a_relative_store_is_found_from_other_folders(tmp_path, monkeypatch):
    study("a", "results/shared")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert store_of("../results/a/metrics", None).root == Path("../results/shared")


def test_a_key_belongs_to_the_one_store_of_all_studies():
    study("a", "/elsewhere/store")
    assert store_of("3fa2c1d0", None).root == Path("/elsewhere/store")
    study("b", "results/store")
    with pytest.raises(ConfigError, match=r"^--store: the studies in results have /elsewhere/store, results/store\."):
        store_of("3fa2c1d0", None)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"store": 1}', '{"store": "s", "files": [1]}', '{"store": "s", "settings": []}']
)
def test_half_a_note_is_as_none(text):
    study("a", "/elsewhere")
    Path("results/a/study.json").write_text(text)
    assert read_study(Path("results/a")) == {}
    assert store_of("results/a", None).root == Path("results/store")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "shared")


@pytest.fixture
def mine(store, tmp_path):
    """The results of one checkout, whose study is a day old."""
    return _study(store, tmp_path / "mine/results", "mine")


@pytest.fixture
def theirs(store, tmp_path):
    return _study(store, tmp_path / "theirs/results", "theirs")


def _study(store, results, stage):
    manifest = publish(store, stage, {"a": stage}, output=results / "small" / "top")
    grow_old(store.entry(manifest.key), 24 * HOUR)
    register(results, store)
    return results


def _gc(store, results, *options):
    return main(["gc", "--store", str(store.root), "--results", str(results), *map(str, options)])


def _as_of(host, store, **other):
    """Rewrite every registration as if another machine had made it."""
    for root in registered(store):
        row = {**json.loads(root.file.read_text()), "host": host, **other}
        root.file.write_text(json.dumps(row))


@pytest.mark.parametrize("hard", [True, False], ids=["linked", "on another device"])
def test_what_another_checkout_needs_is_kept(store, mine, tmp_path, capsys, monkeypatch, hard):
    if not hard:
        monkeypatch.setattr("dualread.store.results.hard_link", lambda source, target: False)
    theirs = _study(store, tmp_path / "theirs/results", "theirs")
    assert (theirs / "small/top/a").is_symlink() == (not hard)
    assert _gc(store, mine, "--delete") == 0
    assert len(list(store.stored_keys())) == 2
    assert "removed 0 of 0 unneeded entries" in capsys.readouterr().out


def test_a_missing_folder_is_reported_and_forgotten_with_delete(store, mine, theirs, capsys):
    shutil.rmtree(theirs.parent)
    for n_entries, n_roots, option in ((2, 2, "--all"), (1, 1, "--delete")):
        assert _gc(store, mine, option) == 0
        assert f"{HOST}:{theirs}: no longer exists; " in capsys.readouterr().out
        assert len(list(store.stored_keys())) == n_entries
        assert len(registered(store)) == n_roots
    assert _gc(store, mine) == 0
    assert "no longer exists" not in capsys.readouterr().out


def test_nothing_is_removed_while_a_folder_of_another_machine_cannot_be_seen(store, mine, theirs, capsys):
    _as_of("cluster", store)
    register(mine, store)
    shutil.rmtree(theirs.parent)
    assert _gc(store, mine, "--delete") == 1
    said = capsys.readouterr().err
    assert f"cluster:{theirs}: this results folder uses the store" in said
    assert f"--forget cluster:{theirs}" in said
    assert len(list(store.stored_keys())) == 2
    assert _gc(store, mine, "--delete", "--forget", f"cluster:{theirs}") == 0
    assert len(list(store.stored_keys())) == 1


def test_a_folder_of_another_machine_counts_if_it_is_the_same_here(store, mine, theirs):
    _as_of("cluster", store)
    assert list(leftovers(store, results=[mine])) == []
    _as_of("cluster", store, inode=1)  # two machines may each have a /home/me/results
    with pytest.raises(ArtifactError, match=r"cannot be seen from"):
        [root.is_there() for root in registered(store)]


def test_only_a_registered_folder_can_be_forgotten(store, mine, capsys):
    assert _gc(store, mine, "--forget", "cluster:/nowhere") == 1
    assert f"cluster:/nowhere: not registered in {store.root}. Known: {HOST}:{mine}." in capsys.readouterr().err


def test_a_store_inside_the_results_folder_may_be_moved_with_it(tmp_path):
    store = Store(tmp_path / "here/results/store")
    _study(store, tmp_path / "here/results", "mine")
    (tmp_path / "here").rename(tmp_path / "there")
    (root,) = registered(Store(tmp_path / "there/results/store"))
    assert (root.folder, root.is_there()) == (tmp_path / "there/results", True)


def test_a_second_registration_writes_nothing(store, mine):
    (file,) = store.root.glob("roots/*")
    before = file.stat().st_mtime_ns, file.stat().st_ino
    register(mine, store)
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == before


def test_a_folder_that_cannot_be_registered_is_an_error_with_the_remedy(tmp_path, monkeypatch):
    """Otherwise gc of another user would remove what it needs."""

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(ArtifactError, match=r"cannot be registered there .* Each owner runs: chgrp -R GROUP "):
        register(tmp_path / "results", Store(tmp_path / "shared"))
    assert registered(Store(tmp_path / "shared")) == []


def test_a_store_on_a_read_only_disk_is_left_alone_with_a_warning(tmp_path, monkeypatch, capsys):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("os.replace", refuse)
    register(tmp_path / "results", Store(tmp_path / "shared"))
    assert registered(Store(tmp_path / "shared")) == []
    assert "does not know this folder" in capsys.readouterr().err


def test_an_unreadable_folder_does_not_count_as_missing(store, theirs):
    shutil.rmtree(theirs)
    theirs.symlink_to(theirs)  # not even its owner can follow it
    with pytest.raises(ArtifactError, match=rf"{theirs}: .*ask its owner for access"):
        [root.is_there() for root in registered(store)]


def test_a_folder_with_restored_results_is_registered(store, mine, tmp_path):
    lock = write_lock(mine / "small", store)
    list(restore(lock, store, root=tmp_path / "restored"))
    assert tmp_path / "restored/results" in {root.folder for root in registered(store)}

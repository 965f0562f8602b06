"""A store that two users of one group share, with any umask; children of the tests become these users."""

import os
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

import pytest

from dualread.apps.main import main
from dualread.apps.store import gc as gc_command
from dualread.errors import ArtifactError
from dualread.store import copy, disk, gc, partial, place, results
from dualread.store.key import Action
from dualread.store.manifest import read_manifest
from dualread.store.store import Store
from tests.store.entries import HOUR, grow_old, publish

# What a child imports late would be in a folder that it may not read.
import concurrent.futures.thread  # isort: skip
import grp, pwd  # isort: skip # noqa: E401
import dualread.apps.serve  # isort: skip

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become two users")
assert all((concurrent.futures.thread, grp, pwd, dualread.apps.serve, copy, disk, gc, gc_command, results))

A, B, GROUP, ALONE = 2001, 2002, 3000, 3001
OWN = Action(stage="grade", code="c0", spec={}, inputs={}, packages={})


@pytest.fixture(params=[0o022, 0o077], ids=["022", "077"])
def umask(request):
    return request.param


@pytest.fixture
def folder():
    """A folder that everybody may enter, with a store for the group and a results folder for each user."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    for name, uid, mode in (("store", 0, 0o2775), ("a", A, 0o755), ("b", B, 0o755)):
        (folder / name).mkdir()
        os.chown(folder / name, uid, GROUP)
        (folder / name).chmod(mode)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def store(folder):
    return Store(folder / "store")


def as_user(uid, umask, do, *, group=GROUP):
    """Call `do` as a user; return whether it raised nothing, and what it said."""
    with tempfile.TemporaryFile("w+") as said:
        if (child := os.fork()) == 0:
            code = 1
            try:
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
                sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
                os.setgroups([])
                os.setgid(group)
                os.setuid(uid)
                os.umask(umask)
                code = int(do() is False)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        said.seek(0)
        return os.waitstatus_to_exitcode(status) == 0, said.read()


def run_of(store, output, text="1", **options):
    """What a run does: it registers its results, and publishes one of them."""

    def run():
        disk.check_writable(store.root)
        place.register(output.parents[1], store)
        publish(store, "grade", {"file": text, "folder/file": text}, spec={"text": text}, output=output, **options)

    return run


def test_each_finds_what_the_other_made_and_adds_to_it(folder, store, umask):
    for uid, name, text in ((A, "a", "1"), (B, "b", "1"), (B, "b", "2"), (A, "a", "3"), (A, "a", "2")):
        ok, said = as_user(uid, umask, run_of(store, folder / name / "results/small/graded", text))
        assert ok, said
    assert len(place.registered(store)) == 2
    assert len(list(store.stored_keys())) == 3
    modes = {path.stat().st_mode & 0o7777 for path in store.root.rglob("*") if path.is_dir()}
    assert modes == {0o2775}
    assert {path.stat().st_mode & 0o777 for path in store.root.rglob("??/*/**/file")} == {0o444}
    assert (folder / "b/results/small/graded/file").read_text() == "2"


def test_gc_of_one_keeps_what_the_other_needs(folder, store, umask, monkeypatch):
    out = {uid: folder / name / "results/small/graded" for uid, name in ((A, "a"), (B, "b"))}
    for uid, text in ((A, "1"), (B, "1"), (A, "2"), (A, "3")):
        assert as_user(uid, umask, run_of(store, out[uid], text))[0]
    grow_old(store.root, 3 * HOUR)
    command = ["gc", "--delete", "--store", str(store.root), "--results", str(folder / "a/results")]
    ok, said = as_user(A, umask, lambda: main(command) == 0)
    if umask == 0o077:  # A cannot see what B needs
        assert not ok
        assert "cannot be read (Permission denied). Ask its owner for access" in said
        assert len(list(store.stored_keys())) == 3
        return
    assert ok, said
    assert "removed 1 of 1 unneeded" in said
    manifest = read_manifest(out[B] / "MANIFEST.json")
    assert list(manifest.wrong_bytes(store.entry(manifest.key))) == []


def test_an_entry_that_an_unknown_folder_links_is_kept(folder, store):
    assert as_user(A, 0o022, run_of(store, folder / "a/results/small/graded"))[0]
    shutil.copytree(folder / "a/results", folder / "a/copy", copy_function=os.link)
    shutil.rmtree(folder / "a/results/small")
    grow_old(store.root, 3 * HOUR)
    assert list(gc.leftovers(store, results=[folder / "a/results"])) == []


def test_who_cannot_write_is_told_where_and_what_its_owner_does(folder, store, umask):
    store.root.chmod(0o755)
    os.chown(store.root, A, GROUP)
    assert as_user(A, umask, run_of(store, folder / "a/results/small/graded"))[0]
    ok, said = as_user(B, umask, run_of(store, folder / "b/results/small/graded"))
    assert not ok
    assert "cannot write to: " in said
    assert f"(of {A}, group {GROUP}, mode 755)" in said
    assert f"find {store.root} -type d -exec chmod g+rwxs {{}} +" in said
    for path in (store.root, *store.root.rglob("*")):  # as the remedy says
        if path.is_dir():
            path.chmod(path.stat().st_mode | 0o2070)
    ok, said = as_user(B, umask, run_of(store, folder / "b/results/small/graded"))
    assert ok, said


@pytest.mark.parametrize("closed", [False, True])
def test_a_damaged_entry_of_one_ends_no_run_of_the_other(folder, store, umask, closed):
    assert as_user(A, umask, run_of(store, folder / "a/results/small/graded"))[0]
    (key,) = store.stored_keys()
    (store.entry(key) / "file").chmod(0o644)
    (store.entry(key) / "file").write_text("damaged")
    if closed:  # an entry of a time before the store was shared
        store.entry(key).chmod(0o755)

    def run():
        assert store.lookup(key) is None
        run_of(store, folder / "b/results/small/graded")()
        assert store.lookup(key) is not None

    ok, said = as_user(B, umask, run)
    assert ok, said
    grow_old(store.root, 3 * HOUR)
    found = [one for one in gc.leftovers(store, results=[folder / "b/results"]) if one.kind == "damaged entry"]
    assert [one.key for one in found] == [key]


def test_a_training_of_one_is_not_resumed_by_the_other_while_it_runs(folder, store, umask):
    """Both read the lease, whatever the umask of its writer is."""

    def train():
        with partial.offered(store, OWN):
            (partial.directory() / "checkpoint").mkdir()
            (folder / "a/started").touch()
            while not (folder / "a/stop").exists():
                time.sleep(0.01)
            raise ArtifactError("killed")

    if (child := os.fork()) == 0:
        as_user(A, umask, train)
        os._exit(0)
    while not (folder / "a/started").exists():
        time.sleep(0.01)

    def refused():
        with partial.offered(store, OWN):
            return partial.directory() is None

    ok, said = as_user(B, umask, refused)
    (folder / "a/stop").touch()
    os.waitpid(child, 0)
    assert ok, said
    assert "is held by a running process" in said
    ok, said = as_user(B, umask, refused)  # A's checkpoints are closed to B
    assert ok, said
    assert "closed to you" in said


def test_another_group_is_refused(folder, store):
    ok, said = as_user(B, 0o022, run_of(store, folder / "b/results/small/graded"), group=ALONE)
    assert not ok
    assert "the store has folders that you cannot write to" in said

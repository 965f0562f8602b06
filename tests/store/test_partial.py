import json
import os
import subprocess
import sys

import pytest

from dualread.errors import ArtifactError
from dualread.store import partial
from dualread.store.key import Action
from dualread.store.record import HOST, birth
from dualread.store.store import Store

_ACTION = Action(stage="train", code="c", spec={}, inputs={}, packages={})
_KEY = _ACTION.key


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def _lease(store, host, pid, age_seconds=0.0):
    lease = store.root / "partial" / f"{_KEY}.lease"
    lease.parent.mkdir(parents=True)
    lease.write_text(json.dumps({"host": host, "pid": pid, "birth": birth(pid)}))
    moment = lease.stat().st_mtime - age_seconds
    os.utime(lease, (moment, moment))
    return lease


def _dead_pid():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_there_is_no_folder_outside_the_runner():
    assert partial.directory() is None


def test_a_stage_that_does_not_ask_leaves_no_trace(store):
    with partial.offered(store, _ACTION):
        pass
    assert not store.root.exists()


def test_the_folder_is_kept_after_a_failure_and_removed_after_success(store):
    def interrupted():
        with partial.offered(store, _ACTION):
            (partial.directory() / "checkpoint").write_text("step 3")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list((store.root / "partial").glob("*.lease")) == []
    with partial.offered(store, _ACTION):
        assert (partial.directory() / "checkpoint").read_text() == "step 3"
        assert partial.directory() == store.root / "partial" / _KEY
    assert list((store.root / "partial").iterdir()) == []


def test_the_next_process_takes_over_the_folder_of_a_killed_one(store, tmp_path):
    program = (
        "import os, signal, sys; from pathlib import Path; from dualread.store import key, partial, store\n"
        "action = key.Action(stage='train', code='c', spec={}, inputs={}, packages={})\n"
        "with partial.offered(store.Store(Path(sys.argv[1])), action):\n"
        "    (partial.directory() / 'checkpoint').write_text('step 3')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(store.root)], check=False)
    assert (store.root / "partial" / f"{_KEY}.lease").exists()
    with partial.offered(store, _ACTION):
        assert (partial.directory() / "checkpoint").read_text() == "step 3"


def test_a_running_process_keeps_its_lease(store, capsys):
    lease = _lease(store, HOST, os.getpid(), age_seconds=10_000)
    with partial.offered(store, _ACTION):
        assert partial.directory() is None
    assert lease.exists()
    assert "held by a running process" in capsys.readouterr().err


def test_a_lease_of_another_host_ends_without_heartbeats(store):
    lease = _lease(store, "another-host", 1, age_seconds=60)
    with partial.offered(store, _ACTION):
        assert partial.directory() is None
    moment = lease.stat().st_mtime - 10_000
    os.utime(lease, (moment, moment))
    with partial.offered(store, _ACTION):
        assert partial.directory() == store.root / "partial" / _KEY


def test_a_process_with_a_reused_pid_does_not_hold_the_lease(store):
    lease = _lease(store, HOST, os.getpid())
    lease.write_text(json.dumps({"host": HOST, "pid": os.getpid(), "birth": "before the reboot"}))
    with partial.offered(store, _ACTION):
        assert partial.directory() is not None


def test_a_process_of_which_the_system_shows_nothing_more_holds_its_lease(store, monkeypatch):
    lease = _lease(store, HOST, os.getpid())
    monkeypatch.setattr(partial, "birth", lambda pid: "")  # as of another user's, where /proc hides them
    assert partial.is_held(lease)


def test_a_lease_that_another_process_took_first_is_given_back(store, monkeypatch):
    """Both find an expired lease; the other buries it and takes its place before this one buries anything."""
    lease = _lease(store, HOST, _dead_pid())
    found = []

    def late(path):
        found.append(is_held(path))
        if len(found) == 1:
            lease.unlink()
            lease.write_text(json.dumps({"host": HOST, "pid": os.getpid(), "birth": birth(os.getpid())}))
        return found[-1]

    is_held = partial.is_held
    monkeypatch.setattr(partial, "is_held", late)
    assert not partial.Lease(lease).acquire()
    assert is_held(lease)
    assert list(lease.parent.iterdir()) == [lease]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pid": 1}', f'{{"host": "{HOST}", "pid": "x"}}', "[" * 100_000])
def test_a_truncated_or_damaged_lease_expires_after_a_moment(store, text):
    lease = _lease(store, HOST, _dead_pid())
    lease.write_text(text)
    with partial.offered(store, _ACTION):
        assert partial.directory() is None  # another process may be writing it
    moment = lease.stat().st_mtime - 5
    os.utime(lease, (moment, moment))
    with partial.offered(store, _ACTION):
        assert partial.directory() is not None


@pytest.mark.parametrize("replace", [os.mkfifo, lambda lease: lease.symlink_to("nowhere")])
def test_an_invalid_lease_holds_nothing(store, replace):
    lease = _lease(store, HOST, _dead_pid())
    lease.unlink()
    replace(lease)
    os.utime(lease, (0, 0), follow_symlinks=False)
    with partial.offered(store, _ACTION):
        assert partial.directory() is not None


def test_a_folder_that_cannot_be_created_is_reported(store):
    (store.root / "partial").parent.mkdir()
    (store.root / "partial").write_text("in the way")
    with pytest.raises(ArtifactError, match="cannot write into the store"), partial.offered(store, _ACTION):
        partial.directory()


def test_a_held_lease_has_a_heartbeat(store, monkeypatch):
    monkeypatch.setattr(partial, "_HEARTBEAT_SECONDS", 0.01)
    beats = []
    real = os.utime
    monkeypatch.setattr(partial.os, "utime", lambda path: (beats.append(path), real(path)))
    with partial.offered(store, _ACTION):
        partial.directory()
        work = partial._CURRENT.get()
        while not beats:
            work.lease._stop.wait(0.01)
    assert beats[0].name == f"{_KEY}.lease"


def test_entries_that_differ_in_named_settings_alone_share_a_folder_one_after_the_other(store):
    def action(**settings):
        return Action(stage="train", code="c", spec={"name": "a", "settings": settings}, inputs={}, packages={})

    def offered(made):
        return partial.offered(store, made)

    def killed(made, *but):
        with offered(made):
            (partial.directory(but) / "checkpoint").write_text("step 3")
            raise KeyboardInterrupt

    two, three = action(rate=1, processes=2), action(rate=1, processes=3)
    with pytest.raises(KeyboardInterrupt):
        killed(two, "processes")
    for other in (three, action(rate=1)):
        with offered(other):
            assert not list(partial.directory().iterdir())
    with offered(action(rate=2, processes=2)):
        assert not list(partial.directory(["processes"]).iterdir())
    with offered(three):
        folder = partial.directory(["processes"])
        assert (folder / "checkpoint").read_text() == "step 3"
        with offered(two):
            assert partial.directory(["processes"]) is None  # it is in use
    assert not folder.exists()

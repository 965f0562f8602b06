"""A folder for files that must survive when a job is killed, such as training checkpoints. Never used as a result.

A stage asks for the folder inside `compute` (`partial.directory()`). The runner creates store/partial/<key>/ on
request, guards it with a lease file, and removes it after publication.
"""

import contextlib
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path

from dualread.digests import digest_of
from dualread.progress import say
from dualread.store.digest import read_json
from dualread.store.disk import described, explained, make_folder, unreadable
from dualread.store.key import Action
from dualread.store.record import HOST, birth, is_alive
from dualread.store.store import Store

# A lease of another host expires after ten missed heartbeats; a lease of this host as soon as its process has ended.
_HEARTBEAT_SECONDS = 60.0
_EXPIRED_SECONDS = 600.0
_WRITING_SECONDS = 1.0


def directory(but: Sequence[str] = ()) -> Path | None:
    """Return the folder that survives if the current entry's job is killed; it is created on the first call.

    Jobs that differ in nothing but the settings `but` of their specs share it, one after the other. None outside the
    runner, and while another running process holds the lease: two jobs must not resume from one folder.
    """
    work = _CURRENT.get()
    return None if work is None else work.open(but)


@contextlib.contextmanager
def offered(store: Store, action: Action) -> Iterator[None]:
    """Make `directory` available inside the block. The folder is removed if the block succeeds, and kept otherwise."""
    work = _Work(store, action)
    token = _CURRENT.set(work)
    try:
        yield
        if work.lease is not None:
            shutil.rmtree(work.folder, ignore_errors=True)
    finally:
        _CURRENT.reset(token)
        if work.lease is not None:
            work.lease.close()


def is_held(lease: Path) -> bool:
    """Whether a running process holds `lease`: on this host the process it names; on another host, by its heartbeat."""
    age = 0.0
    try:
        age = abs(time.time() - lease.lstat().st_mtime)  # the clocks of two machines can differ in either direction
        owner = read_json(lease)
        if owner["host"] == HOST:
            # Of other users, some systems show no more than that a process runs.
            return is_alive(owner["pid"]) and birth(owner["pid"]) in ("", owner["birth"])
        return age <= _EXPIRED_SECONDS
    except FileNotFoundError:
        return False
    except PermissionError:
        return age <= _EXPIRED_SECONDS
    except (OSError, ValueError, LookupError, TypeError, OverflowError):
        return age <= _WRITING_SECONDS  # being written, or its writer was killed, or it was damaged later


class Lease:
    """A file that names the running process that holds something; its mtime is the heartbeat."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stop: threading.Event | None = None  # set while it is held here

    def acquire(self) -> bool:
        """Hold it, unless a running process does; return whether it is held here."""
        if self._stop is not None:
            return True
        if os.path.lexists(self.path) and not is_held(self.path):
            # If several processes find it expired, one rename succeeds; a late one takes away the next holder's.
            buried = self.path.with_name(f"{self.path.name}.{HOST}.{os.getpid()}.{threading.get_ident()}")
            with contextlib.suppress(FileNotFoundError):
                self.path.rename(buried)
                buried.rename(self.path) if is_held(buried) else buried.unlink()
        try:
            with self.path.open("x") as file:
                os.fchmod(file.fileno(), 0o644)  # other users have to see that it is held
                json.dump({"host": HOST, "pid": os.getpid(), "birth": birth(os.getpid())}, file)
        except FileExistsError:
            return False
        self._stop = stop = threading.Event()

        def beat() -> None:
            while not stop.wait(_HEARTBEAT_SECONDS):
                with contextlib.suppress(OSError):
                    os.utime(self.path)

        threading.Thread(target=beat, daemon=True).start()
        return True

    def close(self) -> None:
        """Hold it no more."""
        if self._stop is not None:
            self._stop.set()
            self._stop = None
            self.path.unlink(missing_ok=True)


class _Work:
    """The folder of one key, once it is asked for, and the lease beside it."""

    folder: Path
    lease: Lease | None = None

    def __init__(self, store: Store, action: Action) -> None:
        self._root, self._action = store.root, action

    def open(self, but: Sequence[str]) -> Path | None:
        key = self._action.key
        if but:  # a digest of what all actions have in common that differ from this one in these settings alone
            spec = dict(self._action.spec)
            spec["settings"] = {name: value for name, value in spec["settings"].items() if name not in but}
            key = digest_of({**self._action.fields(), "spec": spec, "without": sorted(but)})
        folder = self._root / "partial" / key
        lease = self.lease or Lease(folder.with_name(f"{key}.lease"))
        reason = f"{lease.path} is held by a running process"
        try:
            make_folder(folder.parent, self._root)
            if lease.acquire():
                self.folder, self.lease = folder, lease
                make_folder(folder, self._root)
                if (closed := next(unreadable(folder), None)) is None:
                    return folder
                reason = f"{described(closed)} is closed to you"
        except OSError as error:
            raise explained(error, self._root) from error
        say(f"warning: {reason}; this job starts from the beginning and keeps no checkpoints to resume from")
        return None


_CURRENT: ContextVar[_Work | None] = ContextVar("partial work", default=None)

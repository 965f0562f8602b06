"""What keeps two runs apart: Snakemake's folder of one machine, and the results of one study."""

import atexit
import contextlib
import fcntl
import os
import shutil
from pathlib import Path
from typing import IO

from dualread.errors import ConfigError
from dualread.store.digest import read_json
from dualread.store.partial import Lease
from dualread.store.record import HOST

TEMPORARY = "temporary"  # in Snakemake's folder: what is removed when a run ends, or when the next one begins


def free_dead_locks(folder: Path) -> IO[str]:
    """Hold a lock of our own in Snakemake's `folder` until this process ends; remove Snakemake's if nobody else does.

    A SIGKILL leaves Snakemake's lock behind, and every later run would ask for --unlock first; what it leaves in
    `TEMPORARY` is removed as well. The caller keeps the returned file open for as long as the lock has to hold.
    """
    folder.mkdir(exist_ok=True)
    running = (folder / "running").open("a+")
    # Snakemake's own lock decides where another process is at work, where the file system has no such locks, and where
    # another machine held the last one, because some file systems keep these locks to one machine.
    with contextlib.suppress(OSError):
        fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)
        running.seek(0)
        if running.read() in ("", HOST):
            for lock in folder.glob("locks/*.lock"):
                lock.unlink(missing_ok=True)
            for remnant in (folder / TEMPORARY).glob("*"):
                shutil.rmtree(remnant, ignore_errors=True)
            running.truncate(0)
            running.write(HOST)
            running.flush()
    with contextlib.suppress(OSError):
        fcntl.flock(running, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return running


def hold(results: Path) -> IO[str] | Lease:
    """Hold the results of a study until this process ends; the caller keeps what is returned.

    Snakemake locks its folder when it has planned, and --nolock switches that off. Of two runs at a time, one would
    plan with results that the other is about to replace.
    """
    this_process = f"process {os.getpid()} on {HOST}"
    try:
        results.mkdir(parents=True, exist_ok=True)
        running = (results / "running").open("a+")
        try:
            fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            running.seek(0)
            if (holder := running.read()) == this_process:  # the rules of a module are read again for each `use rule`
                return running
            running.close()
            raise _at_work(results, holder) from None
        except OSError:  # a file system without locks
            running.close()
            return _hold_by_lease(results, this_process)
        running.truncate(0)
        running.write(this_process)
        running.flush()
        return running
    except OSError as error:
        raise ConfigError(f"{results}: cannot be written to ({error.strerror}). Make the folder writable.") from error


def _hold_by_lease(results: Path, this_process: str) -> Lease:
    lease = Lease(results / "running.lease")
    if lease.acquire():
        atexit.register(lease.close)
        return lease
    owner = {"pid": "?", "host": "?"}
    with contextlib.suppress(OSError, ValueError, TypeError):  # it is being written, is damaged, or has just ended
        owner |= read_json(lease.path)
    if (holder := f"process {owner['pid']} on {owner['host']}") == this_process:
        return lease
    more = f" One that was killed on another machine counts for ten minutes, or until you remove {lease.path}."
    raise _at_work(results, holder, more)


def _at_work(results: Path, holder: str, more: str = "") -> ConfigError:
    return ConfigError(
        f"{results}: another run of this study is at work here ({holder}), so nothing was started. Wait for it, or"
        f" end it. To run another configuration at the same time, use a second checkout; both may have one store.{more}"
    )

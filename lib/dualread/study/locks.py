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


def hold(results: Path) -> Lease:
    """Hold the results of a study until this process ends.

    Snakemake locks its folder when it has planned, and --nolock switches that off. Of two runs at a time, one would
    plan with results that the other is about to replace.
    """
    lease = Lease(results / "running.lease")
    try:
        results.mkdir(parents=True, exist_ok=True)
        if lease.acquire():
            atexit.register(lease.close)
            return lease
    except OSError as error:
        raise ConfigError(f"{results}: cannot be written to ({error.strerror}). Make the folder writable.") from error
    holder = {"pid": "?", "host": "?"}
    with contextlib.suppress(OSError, ValueError, TypeError):  # it is being written, or has just ended
        holder |= read_json(lease.path)
    if (holder["pid"], holder["host"]) == (os.getpid(), HOST):
        return lease  # the rules of a module are read once more for each `use rule`
    raise ConfigError(
        f"{results}: another run of this study is at work here (process {holder['pid']} on {holder['host']}), so"
        f" nothing was started. Wait for it, or end it; one that was killed elsewhere counts for ten minutes, or until"
        f" you remove {lease.path}. To run another configuration at the same time, use a second checkout; both may have"
        " one store."
    )

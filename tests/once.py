"""What takes long to make is made once, also when the tests run in several processes."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder `name`. The first process that asks for it makes it, and the others wait until it is finished.

    Args:
        factory: Pytest's fixture `tmp_path_factory`.
        name: Of the folder, unique within a run of the tests.
        make: Fills the empty folder. If it fails, the next process that asks for the folder tries again.
    """
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # pytest-xdist gives each process a folder of its own inside that of the run
    folder, finished = base / name, base / f"{name}.finished"
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not finished.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            finished.touch()
    return folder

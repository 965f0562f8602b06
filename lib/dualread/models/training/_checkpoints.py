"""Which checkpoint a killed training goes on from: the newest whose every file is what its seals say.

A kill may leave one half-written, and a disk may damage one: neither may become weights.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from dualread.progress import say
from dualread.store.digest import sha256_file
from dualread.store.files import read_json

# Two, so that one is whole whenever a kill comes.
KEPT = 2


def seal(checkpoint: Path, process: int) -> None:
    """Write down the digests of the files that `process` has written to `checkpoint`, now that all of them are there.

    The first process writes all but the other processes' random numbers.
    """
    own = f"rng_state_{process}.pth"  # what the trainer calls it where there are several
    others = {path.name for path in checkpoint.glob("rng_state_*.pth")} - {own}
    names = [own] if process else _files(checkpoint, without=others)
    table = {name: sha256_file(checkpoint / name) for name in names}
    temporary = checkpoint / f".{_seal(process)}"
    temporary.write_text(json.dumps(table, indent=1))
    temporary.replace(checkpoint / _seal(process))


def newest_complete(folder: Path, n_processes: int) -> Path | None:
    """Return the checkpoint with most steps that every process can go on from, or None where there is none.

    Args:
        folder: Where the trainer wrote checkpoint-<step>/.
        n_processes: How many processes wrote it, each the state of its own random numbers.
    """
    newest_first = sorted(_checkpoints(folder), key=_step, reverse=True)
    return next((path for path in newest_first if not any(_problems(path, n_processes))), None)


def remove_incomplete(folder: Path, n_processes: int) -> None:
    """Name and remove what is half-written or damaged: written over by another killed run, it could seem whole."""
    for path in _checkpoints(folder):
        if problem := next(_problems(path, n_processes), None):
            say(f"warning: {problem}. Nothing is read from {path}; it is removed")
            shutil.rmtree(path)


def _checkpoints(folder: Path) -> list[Path]:
    found = folder.glob("checkpoint-*")
    return [path for path in found if path.is_dir() and path.name.partition("-")[2].isdecimal()]


def _step(path: Path) -> int:
    return int(path.name.removeprefix("checkpoint-"))


def _problems(path: Path, n_processes: int) -> Iterator[str]:
    sealed: dict[str, str] = {}
    for process in range(n_processes):
        try:
            if not (table := read_json(path / _seal(process))):
                raise ValueError("it names no file")
            sealed |= table
        except FileNotFoundError:
            yield f"{path}: half-written, {_seal(process)} is missing"
        except (OSError, ValueError, TypeError) as error:
            yield f"{path / _seal(process)}: damaged ({error})"
    for name, digest in sealed.items():
        try:
            found = sha256_file(path / name)
        except OSError as error:
            yield f"{path / name}: cannot be read ({error.strerror})"
        else:
            if found != digest:
                yield f"{path / name}: damaged, sha256 {found[:12]}, expected {digest!s:.12}"


def _files(checkpoint: Path, without: set[str]) -> list[str]:
    files = (path.relative_to(checkpoint).as_posix() for path in sorted(checkpoint.rglob("*")) if path.is_file())
    return [name for name in files if name not in without and not name.startswith((".sealed-", "sealed-"))]


def _seal(process: int) -> str:
    return f"sealed-{process}.json"

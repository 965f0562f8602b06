"""Finds the checkpoint from which a killed training resumes: the newest one whose files all match their digests.

A kill can leave a half-written checkpoint, and a disk can damage one. Neither is ever loaded. The digests of a
checkpoint's files are in its seals, one file `sealed-<process>.json` per process.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from dualread.progress import say
from dualread.store.digest import read_json, replace_text, sha256_file

# With two, one is complete even if a kill interrupts the writing of the other.
KEPT = 2


def seal(checkpoint: Path, process: int) -> None:
    """Record the digests of the files that `process` has written to `checkpoint`; called when all of them are complete.

    The first process writes all files except for the random states of the other processes.
    """
    own = f"rng_state_{process}.pth"  # the name that the trainer uses where there are several processes
    files = (path.relative_to(checkpoint).as_posix() for path in sorted(checkpoint.rglob("*")) if path.is_file())
    others = ("rng_state_", "sealed-", ".sealed-")
    names = [own] if process else [name for name in files if name == own or not name.startswith(others)]
    table = {name: sha256_file(checkpoint / name) for name in names}
    replace_text(checkpoint / _seal(process), json.dumps(table, indent=1))


def newest_complete(folder: Path, n_processes: int, *, remove: bool = False) -> Path | None:
    """Return the complete checkpoint with the most steps, or None if there is none.

    Args:
        folder: The folder with the trainer's checkpoint-<step>/.
        n_processes: Number of processes; a checkpoint has to hold the random state of each.
        remove: Whether half-written and damaged checkpoints are removed, with a warning. If another run wrote over such
            a checkpoint and were killed, it could pass for complete.
    """
    found = [(path.name.partition("-")[2], path) for path in folder.glob("checkpoint-*") if path.is_dir()]
    complete = None
    for _, path in sorted((int(step), path) for step, path in found if step.isdecimal()):
        if (problem := next(_problems(path, n_processes), None)) is None:
            complete = path
        elif remove:
            say(f"warning: {problem}. The checkpoint {path} is removed; nothing is read from it")
            shutil.rmtree(path)
    return complete


def _problems(path: Path, n_processes: int) -> Iterator[str]:
    sealed: dict[str, str] = {}
    for process in range(n_processes):
        try:
            if not (table := read_json(path / _seal(process))):
                raise ValueError("it lists no files")
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


def _seal(process: int) -> str:
    return f"sealed-{process}.json"

"""Finds the checkpoint from which a killed training resumes: the newest one whose files all match their digests.

A kill can leave a half-written checkpoint, and a disk can damage one. Neither is ever loaded. The digests of a
checkpoint's files are in its seals, one file `sealed-<process>.json` per process.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from dualread.progress import say
from dualread.store.digest import read_json, replace_text, sha256_file

# With two, one is complete even if a kill interrupts the writing of the other.
KEPT = 2


def seal(checkpoint: Path, process: int, n_processes: int = 1) -> None:
    """Record the digests of the files that `process` has written to `checkpoint`; called when all of them are complete.

    Each process writes its random state and, of a sharded model, its part. The first one writes all else.
    """
    digests = {}
    for path in sorted(checkpoint.rglob("*")):
        named = re.fullmatch(r"rng_state_(\d+)\.pth|__(\d+)_\d+\.distcp", path.name)  # by the process that wrote it
        writer = 0 if named is None else int(named[1] or named[2])
        if path.is_file() and writer == process and not path.name.startswith(("sealed-", ".sealed-")):
            digests[path.relative_to(checkpoint).as_posix()] = sha256_file(path)
    table = {"processes": n_processes, "files": digests}
    replace_text(checkpoint / _seal(process), json.dumps(table, indent=1))


def newest_complete(folder: Path, n_processes: int | None, *, remove: bool = False) -> Path | None:
    """Return the complete checkpoint with the most steps, or None if there is none.

    Args:
        folder: The folder with the trainer's checkpoint-<step>/.
        n_processes: Number of processes that have to have written it; None if any number may.
        remove: Whether half-written and damaged checkpoints are removed, with a warning. If another run wrote over such
            a checkpoint and were killed, it could pass for complete.
    """
    checkpoints = [(path.name.partition("-")[2], path) for path in folder.glob("checkpoint-*") if path.is_dir()]
    complete = None
    for _, path in sorted((int(step), path) for step, path in checkpoints if step.isdecimal()):
        if (problem := next(_problems(path, n_processes), None)) is None:
            complete = path
        elif remove:
            say(f"warning: {problem}. The checkpoint {path} is removed; nothing is read from it")
            shutil.rmtree(path)
    return complete


def _problems(path: Path, n_processes: int | None) -> Iterator[str]:
    sealed: dict[str, str] = {}
    expected, process = n_processes or 1, 0
    while process < expected:
        try:
            seal = read_json(path / _seal(process))
            sealed |= seal["files"]
            if n_processes is None:
                expected = int(seal["processes"])
            elif seal["processes"] != n_processes:
                yield f"{path}: written by {seal['processes']} processes, expected {n_processes}"
        except FileNotFoundError:
            yield f"{path}: half-written, {_seal(process)} is missing"
        except (OSError, ValueError, TypeError, KeyError) as error:
            yield f"{path / _seal(process)}: damaged ({error})"
        process += 1
    for name, digest in sealed.items():
        try:
            actual = sha256_file(path / name)
        except OSError as error:
            yield f"{path / name}: cannot be read ({error.strerror})"
        else:
            if actual != digest:
                yield f"{path / name}: damaged, sha256 {actual[:12]}, expected {digest!s:.12}"


def _seal(process: int) -> str:
    return f"sealed-{process}.json"

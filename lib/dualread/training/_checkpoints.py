"""Which checkpoint a killed training goes on from. A kill may leave one half-written: that one does not count."""

import json
import shutil
from pathlib import Path

# Two, so that one is whole whenever a kill comes.
KEPT = 2


def newest_complete(folder: Path, n_processes: int) -> Path | None:
    """Return the checkpoint with most steps that every process can go on from, or None where there is none.

    Args:
        folder: Where the trainer wrote checkpoint-<step>/.
        n_processes: How many processes wrote it, each the state of its own random numbers.
    """
    complete = [path for path in _checkpoints(folder) if _is_complete(path, n_processes)]
    return max(complete, key=_step, default=None)


def remove_incomplete(folder: Path, n_processes: int) -> None:
    """Remove what a kill left half-written: written over by a run that is killed too, it could look complete."""
    for path in _checkpoints(folder):
        if not _is_complete(path, n_processes):
            shutil.rmtree(path)


def _checkpoints(folder: Path) -> list[Path]:
    return [path for path in folder.glob("checkpoint-*") if path.is_dir()]


def _step(path: Path) -> int:
    return int(path.name.removeprefix("checkpoint-"))


def _is_complete(path: Path, n_processes: int) -> bool:
    """The first process writes the trainer's state last; another one may still be writing its random numbers."""
    try:
        json.loads((path / "trainer_state.json").read_bytes())
    except (OSError, ValueError):
        return False
    randomness = ["rng_state.pth"] if n_processes == 1 else [f"rng_state_{i}.pth" for i in range(n_processes)]
    return all((path / name).is_file() for name in ("optimizer.pt", "scheduler.pt", *randomness)) and any(
        (path / name).is_file() for name in ("model.safetensors", "model.safetensors.index.json")
    )

"""Who computes, and what is recorded of it: processes, times and machines, and runs that differ; no part of a key."""

import contextlib
import json
import os
import platform
import re
import resource
import socket
import stat
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dualread.progress import say
from dualread.store.manifest import Manifest

HOST = re.sub(r"[^A-Za-z0-9-]+", "-", socket.gethostname()) or "host"


def is_alive(pid: int) -> bool:
    """Whether the process `pid` is running on this host; a zombie, which has ended, is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it belongs to another user
    return _status(pid)[:1] != ["Z"]  # there is no /proc outside Linux


def birth(pid: int) -> str:
    """Return what tells a process from an earlier one with its pid: boot and start, or "" if they are not known."""
    with contextlib.suppress(OSError, IndexError):
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {_status(pid)[19]}"
    return ""


def _status(pid: int) -> list[str]:
    """Return what the system says of a process, from its state on; nothing if it says nothing."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def measured(seconds: float) -> dict[str, Any]:
    """Return what RECORD.json says of a computation that took `seconds`: time, memory, host, CPU and GPU."""
    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    gpu = {}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        most = torch.cuda.max_memory_allocated() / 2**20  # of this process, and without what a job leaves unused
        gpu = {"gpu": torch.cuda.get_device_name(), "peak_gpu_memory_mb": round(most, 1)}
    return {
        "seconds": round(seconds, 3),
        # The peak of the process so far, including earlier entries; Linux counts in KiB.
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "host": HOST,
        "cpu": cpu,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        **gpu,
    }


def note_difference(root: Path, kept: Manifest, discarded: Manifest) -> None:
    """Report that two runs with one key wrote different files, and add a line to differences.jsonl in the store."""
    names = sorted(set(discarded.files) | set(kept.files))
    different = [name for name in names if discarded.files.get(name) != kept.files.get(name)]
    row = {"key": kept.key, "stage": kept.action.stage, "kept": kept.digest, "discarded": discarded.digest}
    path = root / "differences.jsonl"
    with contextlib.suppress(OSError):  # of somebody else
        with path.open("a") as file:
            file.write(json.dumps({**row, "files": different, "host": HOST}) + "\n")
        is_shared = root.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)  # others than its owner may write there
        path.chmod(0o664 if is_shared else 0o644)
    say(
        f"warning: {kept.action.stage} {kept.key[:8]}: two runs with the same key gave different files"
        f" ({', '.join(different[:5])}); the first result is kept, see {path}"
    )


def disagreements(root: Path, keys: Iterable[str]) -> int:
    """Count the `keys` for which two runs wrote different files."""
    try:
        lines = (root / "differences.jsonl").read_text().splitlines()
    except OSError:
        return 0
    return len({json.loads(line)["key"] for line in lines} & set(keys))

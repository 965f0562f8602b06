"""The CPUs and the memory that this process may use, which affinity and cgroup limits can restrict."""

import contextlib
import ctypes
import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def usable_cpus(cgroup: Path = _CGROUP) -> int:
    """Return the number of CPUs that this process may use at once; at least 1."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # Quota and period: cgroup version 2 has one file ("max 100000" or "150000 100000"), version 1 two (-1: no limit).
    version_2, version_1 = cgroup / "cpu.max", cgroup / "cpu"
    limit = _words(version_2) or [*_words(version_1 / "cpu.cfs_quota_us"), *_words(version_1 / "cpu.cfs_period_us")]
    if len(limit) != 2 or limit[0] in ("max", "-1"):
        return max(1, affinity)
    return max(1, min(affinity, int(limit[0]) // int(limit[1])))


def free_memory_gb(cgroup: Path = _CGROUP, meminfo: Path = Path("/proc/meminfo")) -> float:
    """Return the memory that is free now, in GB (1e9 bytes); infinity if it is not known."""
    table = {line.split(":")[0]: line.split()[1] for line in _lines(meminfo)}
    free = [float(table["MemAvailable"]) * 1024] if "MemAvailable" in table else []
    for folder, limit, used in (
        (cgroup, "memory.max", "memory.current"),
        (cgroup / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        words = [*_words(folder / limit), *_words(folder / used)]
        if len(words) == 2 and words[0] != "max":
            # `inactive_file` is page cache that counts as used although the kernel frees it on demand.
            stat = dict(line.split() for line in _lines(folder / "memory.stat"))
            free.append(float(words[0]) - float(words[1]) + float(stat.get("inactive_file", 0)))
    return min(free, default=float("inf")) / 1e9


def model_slots(model_job_memory_gb: float) -> int:
    """Return how many jobs with one thread and this much memory each the machine can run at once; at least 1."""
    by_memory = free_memory_gb() / model_job_memory_gb
    return max(1, int(min(usable_cpus(), by_memory)))


def return_freed_memory() -> None:
    """Give memory that this process has freed back to the system, where the C library can (glibc).

    Otherwise it stays with the process in pieces, beside which large tables of the next artifact need new memory.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _words(path: Path) -> list[str]:
    return " ".join(_lines(path)).split()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []

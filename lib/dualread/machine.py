"""What this machine really lets a process use: affinity and cgroup limits count, not what the hardware has."""

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def usable_cpus(cgroup: Path = _CGROUP) -> int:
    """Return how many CPUs this process may keep busy at once; at least 1."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, period = _words(cgroup / "cpu.max") or (  # version 2: "max 100000" or "150000 100000"
        *_words(cgroup / "cpu/cpu.cfs_quota_us"),
        *_words(cgroup / "cpu/cpu.cfs_period_us"),
    ) or ("max", "1")
    unlimited = quota in ("max", "-1")
    return max(1, affinity if unlimited else min(affinity, int(quota) // int(period)))


def free_memory_gb(cgroup: Path = _CGROUP, meminfo: Path = Path("/proc/meminfo")) -> float:
    """Return the memory that is free now, in GB (1e9 bytes); infinity where the system does not say."""
    free = [float("inf")]
    for line in meminfo.read_text().splitlines() if meminfo.is_file() else []:
        if line.startswith("MemAvailable:"):
            free.append(float(line.split()[1]) * 1024)
    # Page cache counts as used in a cgroup although it is given back on demand: `inactive_file` is that part of it.
    for limit, used in (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")):
        allowed = _words(cgroup / limit)
        if allowed and allowed[0] != "max":
            stat = (cgroup / limit).with_name("memory.stat")
            cache = next((line.split()[1] for line in _lines(stat) if line.startswith("inactive_file ")), "0")
            free.append(float(allowed[0]) - float(_words(cgroup / used)[0]) + float(cache))
    return min(free) / 1e9


def model_slots(model_job_memory_gb: float) -> int:
    """Return how many jobs of that size, one thread each, this machine can run at once; at least 1."""
    memory = free_memory_gb()
    by_memory = usable_cpus() if memory == float("inf") else int(memory // model_job_memory_gb)
    return max(1, min(usable_cpus(), by_memory))


def _words(path: Path) -> tuple[str, ...]:
    return tuple(" ".join(_lines(path)).split())


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []

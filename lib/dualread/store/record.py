"""What an entry's RECORD.json says of the machine and of the time that it took; none of it is part of a key."""

import platform
import resource
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dualread.store.processes import HOST


def measured(seconds: float) -> dict[str, Any]:
    """Return what RECORD.json says of a computation that took `seconds`: time, memory, host, CPU and GPU."""
    gpu = {}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        gpu = {"gpu": torch.cuda.get_device_name()}
    return {
        "seconds": round(seconds, 3),
        # The peak of the process so far, including earlier entries; Linux counts in KiB.
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "host": HOST,
        "cpu": _cpu(),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        **gpu,
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())

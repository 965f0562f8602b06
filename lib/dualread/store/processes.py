"""Which process of which machine: what leases, scratch directories and links that are being made are named after."""

import os
import re
import socket
from pathlib import Path

HOST = re.sub(r"[^A-Za-z0-9-]+", "-", socket.gethostname()) or "host"


def is_alive(pid: int) -> bool:
    """Whether the process `pid` is running on this host; a zombie, which has ended, is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it belongs to another user
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True  # there is no /proc outside Linux
    return state != "Z"


def birth(pid: int) -> str:
    """Return the start time of a process, with the id of the boot, or "" if the system does not provide them.

    They distinguish the process from an earlier one with the same pid, even across a reboot.
    """
    try:
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {ticks}"
    except OSError:
        return ""

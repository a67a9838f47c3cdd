"""When processes of this machine were started, as Linux says it, and how many cores this one may use."""

from __future__ import annotations

import os
from pathlib import Path

_STARTED_FIELD = 19  # starttime in /proc/PID/stat, counted from the field after the name: proc(5)


def usable_cores() -> int:
    """Return the cores that this process may use; all that there are, where the system does not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def process_started(pid: int) -> int | None:
    """Return the start time of a local process, clock ticks since boot; None when it does not exist or is a zombie."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if after_name[0] in "ZX" else int(after_name[_STARTED_FIELD])

"""How often the kernel has ended a process for want of memory: of the machine, limits of containers included."""

from __future__ import annotations

from pathlib import Path

_COUNTERS = Path("/proc/vmstat")  # of the whole machine, limits of control groups included: Linux 4.13


def memory_kills() -> int:
    """Processes that were ended so since the machine started; 0 where the kernel does not count them."""
    try:
        lines = _COUNTERS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)

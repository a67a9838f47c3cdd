"""The start times of processes on this machine, and the number of cores that this process may use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return the number of cores that this process may use, or of all cores if the system has no CPU affinity."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def process_started(pid: int) -> float | None:
    """Return when a local process started, in seconds since boot; None if there is no such process or it is a zombie.

    Together with `pid`, the start time identifies a process. psutil's start times cannot do this: they depend on the
    boot time, which is rounded to seconds and changes when the clock is set.
    """
    import psutil  # imported here, because `status` of a finished experiment asks for no process

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return round(process.create_time() - psutil.boot_time(), 2)
    except psutil.Error:
        return None

"""When processes of this machine were started, and how many cores this one may use."""

from __future__ import annotations

import os

import psutil


def usable_cores() -> int:
    """Return the cores that this process may use; all that there are, where the system does not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def process_started(pid: int) -> float | None:
    """Return the start time of a local process in seconds since boot; None when it does not exist or is a zombie.

    With `pid` it identifies the process. psutil counts from a boot time in whole seconds, which a set clock changes.
    """
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return round(process.create_time() - psutil.boot_time(), 2)
    except psutil.Error:
        return None

"""How processes have ended, in words."""

from __future__ import annotations

import signal


def name_of_signal(number: int) -> str:
    """Return the name of a signal, "SIGKILL"; of one that has none, as those for real time, "signal 40"."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def how_ended(status: int) -> str:
    """Say how a process ended that has this status, as subprocess has it: below 0 for a signal."""
    return f"was killed by {name_of_signal(-status)}" if status < 0 else f"ended with exit status {status}"

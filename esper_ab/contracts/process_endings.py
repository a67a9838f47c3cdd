"""How processes ended, in words."""

from __future__ import annotations

import signal
from collections.abc import Sequence


def name_of_signal(number: int) -> str:
    """Return the name of a signal, "SIGKILL", or "signal 40" for one without a name, such as a real-time signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def describe_end(status: int, lines: Sequence[str]) -> str:
    """Describe how a process ended, with the last line that it printed."""
    return how_ended(status) + (f"; its last line: {lines[-1].strip()}" if lines else " and printed nothing")


def how_ended(status: int) -> str:
    """Describe how a process ended; as in subprocess, a negative `status` means a signal."""
    if status < 0:
        return f"was killed by {name_of_signal(-status)}"
    return f"ended with exit status {status}"

"""How processes have ended, in words."""

from __future__ import annotations

import signal
from collections.abc import Sequence


def name_of_signal(number: int) -> str:
    """Return the name of a signal, "SIGKILL"; of one that has none, as those for real time, "signal 40"."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def end_told(status: int, said: Sequence[str]) -> str:
    """Say how a process ended, and the last of the lines that it wrote."""
    return how_ended(status) + (f"; its last line: {said[-1].strip()}" if said else " and said nothing")


def how_ended(status: int) -> str:
    """Say how a process ended that has this status, as subprocess has it: below 0 for a signal."""
    return f"was killed by {name_of_signal(-status)}" if status < 0 else f"ended with exit status {status}"

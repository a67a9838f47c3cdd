"""How crowded this machine is: limits on waiting that hold for a process alone are stretched by it."""

from __future__ import annotations

import os

from esper_ab.contracts.process_start import usable_cores


def crowding(processes: int = 1) -> float:
    """How many times slower than alone a process may be now: those that want to run, per core; 1 at least.

    `processes`: about to be started, which the load average of the last minute does not know of yet.
    """
    return max(1.0, max(os.getloadavg()[0], processes) / usable_cores())

"""The load of this machine. Time limits that suit an idle machine are multiplied by it."""

from __future__ import annotations

import os

from esper_ab.contracts.process_start import usable_cores


def crowding(processes: int = 1) -> float:
    """Return the factor by which load may slow a process down now: runnable processes per core, at least 1.

    `processes`: processes about to be started, which the load average of the last minute does not yet include.
    """
    return max(1.0, max(os.getloadavg()[0], processes) / usable_cores())

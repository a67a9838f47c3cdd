"""What the kernel has counted since a worker was started: processes ended for want of memory, and processes refused.

The worker's own control group counts for it; the machine does where no group counts.
"""

from __future__ import annotations

import signal
from pathlib import Path

from esper_ab.contracts.endings import name_of_signal
from esper_ab.health import control_groups, processes


class Shortages:
    """Of a worker that is being started by this process, in whose control groups it begins."""

    def __init__(self) -> None:
        self._groups = control_groups.folders()
        self._killed, self._refused = _kills(self._groups), control_groups.refusals(self._groups)

    def ending(self, number: int) -> str:
        """How a worker ended that signal `number` has killed, in words; what the kernel has counted is named."""
        said = f"was killed by {name_of_signal(number)}"
        if number != signal.SIGKILL:
            return said + self.of_processes()
        (kills, whose), (before, _) = _kills(self._groups), self._killed
        if kills <= before:
            return f"{said} (the kernel does that when memory runs out, and has not said so)"
        limit = control_groups.memory(self._groups)
        by = f" ({limit.by}: {limit.limit / 2**30:.2f} GiB)" if limit is not None else ""
        return f"{said}: since it started the kernel has ended a process {whose} for want of memory{by}"

    def of_processes(self) -> str:
        """Say that the worker's group has refused a process since it started, or that few are left; "" otherwise."""
        refused = control_groups.refusals(self._groups) > self._refused
        limit = control_groups.processes(self._groups) if refused else None
        few = processes.described(limit) if limit is not None else processes.limited()
        if not few:
            return ""
        return f"; {'since it started a process was refused' if refused else 'few processes may be started'}: {few}"


def _kills(groups: list[Path]) -> tuple[int, str]:
    """Processes that were ended for want of memory so far, and whose."""
    counted = control_groups.kills(groups)
    if counted is not None:
        return counted, "of its control group"
    return control_groups.kills_of_machine(), "of this machine"

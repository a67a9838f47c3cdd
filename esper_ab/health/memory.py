"""What a limit on a process's memory (`ulimit -v`, `ulimit -d`) does to a command, in one line and before it is called.

Libraries take such a limit badly: some end the process, some wait for threads that could not be started, and what
Python says is that a file could not be mapped. So commands that load them are refused where they cannot be loaded, and
what goes wrong in spite of that is told with the limit that is its likely cause.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence
from typing import NamedTuple

from esper_ab.contracts.errors import UsageError


class Limit(NamedTuple):
    """A limit of setrlimit(2) on a process's memory, and the least with which torch, numpy and matplotlib load."""

    what: str
    command: str
    least_bytes: int


LIMITS = {  # libraries were loaded, and networks trained, within 1.1 GB of addresses and 0.6 GB of data
    resource.RLIMIT_AS: Limit("addresses", "ulimit -v", 3 << 29),
    resource.RLIMIT_DATA: Limit("data", "ulimit -d", 3 << 28),
}
# Commands that load numpy, or start a child that loads torch.
LOADING = frozenset((
    "launch", "run", "resume", "extend", "calibrate", "evaluate", "heuristic", "rewards", "report", "query", "export",
    "compare", "power",
))  # fmt: skip


def refuse_little_memory(name: str, args: Sequence[str]) -> None:
    """UsageError when the command `name` loads what a limit on this process's memory has no room for."""
    if name not in LOADING or {"--help", "-h"} & {*args}:
        return
    for number, limit in LIMITS.items():
        soft = resource.getrlimit(number)[0]
        if 0 <= soft < limit.least_bytes:
            raise UsageError(
                f"this process may have {soft / 2**30:.2f} GiB of {limit.what} ({limit.command}), and libraries alone "
                f"need {limit.least_bytes / 2**30:.2f}: `{limit.command} unlimited` first; a control group limits "
                "memory better"
            )


def limited() -> str:
    """Return the limits on this process's memory with their remedy; "" where there are none."""
    soft = {limit.command: resource.getrlimit(number)[0] for number, limit in LIMITS.items()}
    limits = [f"{command} {value >> 10}" for command, value in soft.items() if value >= 0]
    return f"this process has a limit on its memory ({', '.join(limits)}): give it more" if limits else ""

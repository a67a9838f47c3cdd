"""What a limit on a process's addresses (`ulimit -v`) does to a command, in one line and before libraries are loaded.

Under such a limit some libraries end the process, and some wait for threads that could not be started. So commands that
load them are refused where they cannot be loaded.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence

from esper_ab.contracts.errors import UsageError

LEAST_BYTES = 3 << 29  # libraries were loaded, and networks trained, within 1.1 GB
# Commands that load numpy, or start a child that loads torch.
LOADING = frozenset((
    "launch", "resume", "calibrate", "evaluate", "growth", "report", "query", "export",
    "compare", "power",
))  # fmt: skip


def refuse_little_memory(name: str, args: Sequence[str]) -> None:
    """UsageError when the command `name` loads what a limit on this process's addresses has no room for."""
    if name in LOADING and not {"--help", "-h"} & {*args} and 0 <= _soft_limit() < LEAST_BYTES:
        raise UsageError(
            f"this process may have {_soft_limit() / 2**30:.2f} GiB of addresses (ulimit -v), and libraries alone need "
            f"{LEAST_BYTES / 2**30:.2f}: `ulimit -v unlimited` first; a control group limits memory better"
        )


def limited() -> str:
    """Return the limit on this process's addresses with its remedy; "" where there is none."""
    soft = _soft_limit()
    return f"this process has a limit on its memory (ulimit -v {soft >> 10}): give it more" if soft >= 0 else ""


def _soft_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_AS)[0]

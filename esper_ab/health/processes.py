"""How many more processes and threads may be started here, and how many a command needs before it is called.

Libraries take a lack of them badly: libzmq ends the process, OpenBLAS interrupts it as Ctrl-C would, a worker dies in
its start-up. So what cannot have as many as it needs is refused before a library is loaded, or tried again later.
"""

from __future__ import annotations

import errno
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.process_start import usable_cores
from esper_ab.health import control_groups
from esper_ab.health.control_groups import Allowance
from esper_ab.health.memory import LOADING
from esper_ab.health.system_file import text_of

_MOST_BLAS = 64  # threads for which OpenBLAS is built where numpy and scipy bring it
_BLAS_IN_COORDINATOR = 2  # numpy's and scipy's
_BESIDE_WORKERS = 4  # of a coordinator: two threads of libzmq, one that commits, and the tracker of resources
FEW = 64  # left: more lanes than two, or the threads of a user's own code, may find none
_UNBOUND = 1 << 24 | 1 << 21  # CAP_SYS_RESOURCE, CAP_SYS_ADMIN
_ALL_USERS = ["0", "0", "4294967295"]  # /proc/self/uid_map of the first user namespace
_CHILDREN = frozenset(("launch", "run", "resume", "extend", "calibrate", "evaluate", "heuristic", "rewards"))


def allowances() -> list[Allowance]:
    """Return the limits on processes that hold for this one, each with what is used of it; threads count."""
    soft = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    found = [control_groups.processes(control_groups.folders())]
    if soft >= 0 and not _is_unbound(text_of(Path("/proc/self/status")), text_of(Path("/proc/self/uid_map"))):
        found.append(Allowance(f"ulimit -u of user {os.getuid()}", soft, tasks_of(os.getuid(), Path("/proc"))))
    return [one for one in found if one is not None]


def tightest() -> Allowance | None:
    """Return the limit that leaves the least; None without one."""
    return min(allowances(), key=lambda one: one.left, default=None)


def tasks_of(user: int, proc: Path) -> int:
    """Count the processes of `user` that can be seen in `proc`, with their threads."""
    count = 0
    for status in proc.glob("[0-9]*/status"):
        lines = dict(line.partition(":")[::2] for line in text_of(status).splitlines())
        if lines.get("Uid", "").split()[:1] == [str(user)]:
            count += int(lines.get("Threads", "1"))
    return count


def _is_unbound(status: str, uid_map: str) -> bool:
    """Whether the kernel counts no processes against this one's limit: root's, and those with its capabilities."""
    lines = dict(line.partition(":")[::2] for line in status.splitlines())
    root = lines.get("Uid", "").split()[:1] == ["0"]
    able = int(lines.get("CapEff", "0").strip() or "0", 16) & _UNBOUND
    return uid_map.split() == _ALL_USERS and (root or able != 0)


def blas_threads(environment: Mapping[str, str]) -> int:
    """Threads that OpenBLAS starts beside the one that loads it."""
    asked = (environment.get(name, "") for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"))
    limits = [int(text) for text in asked if text.isdigit() and int(text)]
    return min(usable_cores(), _MOST_BLAS, *limits[:1]) - 1


def needed(name: str) -> int:
    """Processes and threads, beside this one, without which the command `name` ends in a library."""
    if name not in LOADING:
        return 0
    each = blas_threads(os.environ)
    child = 1 + each if name in _CHILDREN else 0
    return _BLAS_IN_COORDINATOR * each + child


def refuse_few_processes(name: str, args: Sequence[str]) -> None:
    """UsageError when the command `name` needs more processes and threads than may be started."""
    if {"--help", "-h"} & {*args}:
        return
    _refuse(f"`{name}` needs", needed(name), "raise the limit or end something; OMP_NUM_THREADS=1 needs fewer")


def check(workers: int, each: int) -> None:
    """UsageError unless a coordinator and so many workers may be started; `each`: of one worker."""
    to_come = 0 if "scipy.special" in sys.modules else blas_threads(os.environ)  # loaded when the workers are started
    count = to_come + _BESIDE_WORKERS + workers * each
    _refuse(f"{workers} lanes need", count, "raise the limit, end something, or name fewer devices")


def _refuse(who: str, count: int, remedy: str) -> None:
    least = tightest() if count else None
    if least is not None and least.left < count:
        raise UsageError(
            f"{who} {count} more processes and threads, and {least.left} may be started: {described(least)}; {remedy}"
        )


def require(count: int) -> None:
    """OSError (EAGAIN) unless so many processes and threads may be started."""
    least = tightest() if count else None
    if least is not None and least.left < count:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def described(found: Allowance) -> str:
    """Say a limit on processes and what is used of it."""
    return f"{found.used} of {found.limit} are in use, threads included ({found.by})"


def needed_to_train(workers: int, each: int) -> int:
    """Processes and threads, beside this one, of a command that trains with so many workers; `each`: of one."""
    return _BLAS_IN_COORDINATOR * blas_threads(os.environ) + _BESIDE_WORKERS + workers * each


def limited() -> str:
    """Return the limit on processes that leaves few; "" where none does."""
    least = tightest()
    return described(least) if least is not None and least.left < FEW else ""

"""Control groups of a process, of both generations of Linux: their limits, what is used of them, and what they counted.

Texts of /proc and /sys in. A limit of any group above a process's own holds for the process, too. A container may see
its own group as the root, so the folders that there are count, from the innermost on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from esper_ab.health.system_file import text_of

_ROOT = Path("/sys/fs/cgroup")
_KILLS = "oom_kill"
_NO_LIMIT = 1 << 60  # the first generation says so with the largest number of whole pages


class Allowance(NamedTuple):
    """A limit, what of it is in use, and what sets it."""

    by: str  # as a user would look for it: "memory.max of control group /sys/fs/cgroup/session"
    limit: int
    used: int

    @property
    def left(self) -> int:
        return max(0, self.limit - self.used)


def folders() -> list[Path]:
    """Return the folders of this process's control groups, in which its children begin; the innermost first."""
    found: list[Path] = []
    for line in text_of(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        root = _ROOT / controllers if controllers else _ROOT
        inner = root / path.lstrip("/")
        found += [folder for folder in (inner, *inner.parents) if folder.is_relative_to(root)]
    return found


def memory(groups: Sequence[Path]) -> Allowance | None:
    """Return the limit on memory that leaves the least bytes; None without one. Caches of files are not in use."""
    return _tightest([
        *(_memory(group, "memory.max", "memory.current", "inactive_file") for group in groups),
        *(_memory(group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file") for group in groups),
    ])


def processes(groups: Sequence[Path]) -> Allowance | None:
    """Return the limit on processes, threads included, that leaves the least; None without one."""
    return _tightest([_allowance(group, "pids.max", _number(group / "pids.current") or 0) for group in groups])


def kills(groups: Sequence[Path]) -> int | None:
    """Processes that were ended for want of memory in the innermost group that counts them; None where none does.

    Of the second generation those of groups below are counted with it.
    """
    counted = (_counter(group / name, _KILLS) for group in groups for name in ("memory.events", "memory.oom_control"))
    return next((count for count in counted if count is not None), None)


def kills_of_machine() -> int:
    """Processes of this machine that were ended for want of memory, those of containers included: Linux 4.13."""
    return _counter(Path("/proc/vmstat"), _KILLS) or 0


def refusals(groups: Sequence[Path]) -> int:
    """How often one of the groups has refused a process or thread because of its limit."""
    return sum(_counter(group / "pids.events", "max") or 0 for group in groups)


def _memory(group: Path, limit: str, usage: str, cache: str) -> Allowance | None:
    used = (_number(group / usage) or 0) - (_counter(group / "memory.stat", cache) or 0)
    return _allowance(group, limit, max(0, used))


def _allowance(group: Path, name: str, used: int) -> Allowance | None:
    limit = _number(group / name)
    return None if limit is None or limit >= _NO_LIMIT else Allowance(f"{name} of control group {group}", limit, used)


def _tightest(found: Sequence[Allowance | None]) -> Allowance | None:
    return min((one for one in found if one is not None), key=lambda one: one.left, default=None)


def _number(file: Path) -> int | None:
    text = text_of(file).strip()
    return int(text) if text.isdigit() else None


def _counter(file: Path, name: str) -> int | None:
    """A number of a file with lines of names and numbers; None where it has none of that name."""
    for line in text_of(file).splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == name and words[1].isdigit():
            return int(words[1])
    return None

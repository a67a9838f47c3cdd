"""Limits of control groups (containers, batch jobs), and how many processes were killed for lack of memory."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from esper_ab.contracts.process_endings import name_of_signal
from esper_ab.health.system_file import text_of

_ROOT = Path("/sys/fs/cgroup")
_NO_LIMIT = 1 << 60  # version 1 has no word for it and writes the largest number of whole pages
# Version 2, then 1: the limit, the usage, and the entry of memory.stat for the part of the usage that is file cache.
_MEMORY_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


class MemoryLimit(NamedTuple):
    """A limit on memory, how much of it is in use, and the file that sets it."""

    by: str  # "memory.max of control group /sys/fs/cgroup/session"
    limit: int
    used: int

    @property
    def left(self) -> int:
        return max(0, self.limit - self.used)


class OomWatch:
    """Detects whether the kernel has killed a process for lack of memory since this object was made."""

    def __init__(self) -> None:
        self._groups = folders()
        self._before = kills(self._groups)

    def ending(self, number: int) -> str:
        """Describe the end of a worker that was killed by signal `number`; if memory ran out, include the limit."""
        killed_words = f"was killed by {name_of_signal(number)}"
        if number != signal.SIGKILL:
            return killed_words
        if kills(self._groups) <= self._before:
            return f"{killed_words} (often a sign that memory ran out, but the kernel has not reported it)"
        limit = memory(self._groups)
        limit_words = f" ({limit.by}: {limit.limit / 2**30:.2f} GiB)" if limit is not None else ""
        return f"{killed_words}: since it started, the kernel has killed a process for lack of memory{limit_words}"


def folders() -> list[Path]:
    """Return the folders of this process's control groups, innermost first; its children start in the same groups."""
    groups: list[Path] = []
    for line in text_of(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        root = _ROOT / controllers if controllers else _ROOT
        inner_folder = root / path.lstrip("/")
        groups += [folder for folder in (inner_folder, *inner_folder.parents) if folder.is_relative_to(root)]
    return groups


def memory(groups: Sequence[Path]) -> MemoryLimit | None:
    """Return the memory limit that leaves the fewest bytes; None if there is none. File caches do not count as used."""
    limits = [limit for group in groups for limit in _memory_limits(group)]
    return min(limits, key=lambda limit: limit.left, default=None)


def kills(groups: Sequence[Path]) -> int:
    """Return how many processes were killed for lack of memory in the innermost group that counts them.

    If no group counts them, return the count of the machine.
    """
    files = [group / name for group in groups for name in ("memory.events", "memory.oom_control")]
    counts = (_numbers(file).get("oom_kill") for file in (*files, Path("/proc/vmstat")))
    return next((count for count in counts if count is not None), 0)


def _memory_limits(group: Path) -> Iterator[MemoryLimit]:
    for limit, usage, cache in _MEMORY_FILES:
        text = text_of(group / limit).strip()
        if text.isdigit() and int(text) < _NO_LIMIT:
            used_bytes = int(text_of(group / usage) or 0) - _numbers(group / "memory.stat").get(cache, 0)
            yield MemoryLimit(f"{limit} of control group {group}", int(text), max(0, used_bytes))


def _numbers(file: Path) -> dict[str, int]:
    """Parse a file whose lines are a name and a number."""
    lines = [line.split() for line in text_of(file).splitlines()]
    return {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()}

"""Finds programs that do nothing: their processes use no CPU time, and write neither output nor files."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import psutil

_BUSY_SHARE = 0.01  # of a core: what a process uses that only looks now and then whether something has happened
_TELL_S = 10.0
Idle = Literal["", "with a result", "stopped", "without a result"]


class IdleLimits(msgspec.Struct, frozen=True):
    """How long a program may do nothing, in seconds."""

    with_result_s: float = 30.0  # also for a program whose processes are all stopped by a signal
    without_result_s: float = 300.0  # as for a run before its first sign of life


IDLE_LIMITS = IdleLimits()
NEVER = IdleLimits(math.inf, math.inf)


@dataclass(frozen=True)
class _Snapshot:
    """What the processes had done at a time."""

    at: float  # monotonic, s
    cpu_s: float  # of all processes together
    processes: frozenset[int]


class StillRunning(Exception):
    """A program is to be ended although it neither failed nor idled."""


class Watch:
    """Watches the processes of a program and the files that it writes."""

    def __init__(
        self,
        on_sign: Callable[[], None] = lambda: None,
        paths: tuple[Path, ...] = (),
        limits: IdleLimits = NEVER,
        has_result: Callable[[], bool] = lambda: False,
        tell: Callable[[float], None] = lambda idle_s: None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """`on_sign` is for the caller. `paths`: files and folders that the program writes to.

        `tell` is called every 10 s that the program does nothing. `is_over`: whether the program is to be ended.
        """
        self.on_sign = on_sign
        self._paths = paths
        self.limits = limits
        self._has_result = has_result
        self._tell = tell
        self._is_over = is_over
        self._since: _Snapshot | None = None
        self._written: list[tuple[str, int, int]] = []  # file, size in bytes, time in ns; of a program that idles
        self._reported_s = 0.0

    def look(self, pid: int) -> Idle:
        """Return how the program of process `pid` idles; "" while it works, or has not idled for long enough.

        Raises StillRunning if the program is to be ended anyway.
        """
        if self._is_over():
            raise StillRunning
        if self.limits == NEVER:
            return ""
        tree = _tree(pid)
        snapshot_now = _snapshot(tree)
        earlier_snapshot = self._since
        limits = self.limits
        if earlier_snapshot is None or self._has_computed(earlier_snapshot, snapshot_now) or self._has_written():
            self._since = snapshot_now
            self._reported_s = 0.0
            return ""
        idle_s = snapshot_now.at - earlier_snapshot.at
        if idle_s - self._reported_s >= _TELL_S:
            self._reported_s = idle_s
            self._tell(idle_s)
        if idle_s >= limits.with_result_s and self._has_result():
            return "with a result"
        if idle_s >= limits.with_result_s and _all_stopped(tree):
            return "stopped"
        return "without a result" if idle_s >= limits.without_result_s else ""

    def _has_computed(self, earlier_snapshot: _Snapshot, snapshot_now: _Snapshot) -> bool:
        busy = snapshot_now.cpu_s - earlier_snapshot.cpu_s > _BUSY_SHARE * self.limits.with_result_s
        return busy or snapshot_now.processes != earlier_snapshot.processes

    def _has_written(self) -> bool:
        """Whether files have changed since the last call; a folder may hold many, so a busy program's are not read."""
        written_before = self._written
        self._written = sorted(itertools.chain(*map(_files, self._paths)))
        return self._written != written_before


def idle_words(idle_kind: Idle, limits: IdleLimits) -> str:
    """Return what a program did that has no result, for a message."""
    if idle_kind == "stopped":
        return f"was stopped by a signal (SIGSTOP or the like) and did not go on for {limits.with_result_s:g} s"
    return f"used no CPU time and wrote nothing for {limits.without_result_s:g} s"


def _tree(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants, in whatever session they are."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def _snapshot(tree: list[psutil.Process]) -> _Snapshot:
    cpu_s = 0.0
    for process in tree:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            cpu_s += times.user + times.system
    return _Snapshot(time.monotonic(), cpu_s, frozenset(process.pid for process in tree))


def _files(path: Path) -> Iterator[tuple[str, int, int]]:
    for file in (path, *path.rglob("*")):
        with suppress(OSError):
            status = file.lstat()
            yield str(file), status.st_size, status.st_mtime_ns


def _all_stopped(tree: list[psutil.Process]) -> bool:
    """Whether every process except the first, which only waits for the others, is stopped by a signal."""
    stopped_flags = []
    for process in tree[1:] or tree:
        with suppress(psutil.NoSuchProcess):
            stopped_flags.append(process.status() == psutil.STATUS_STOPPED)
    return bool(stopped_flags) and all(stopped_flags)

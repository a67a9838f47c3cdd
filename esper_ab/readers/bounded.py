"""Run a function that others may have made endless or huge: in a thread, with a time limit and a memory limit."""

from __future__ import annotations

import re
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")
_GRACE_S = 1.0  # after `interrupt`, before the thread is abandoned


def in_time(work: Callable[[], Result], interrupt: Callable[[], None], limit_s: float) -> Result:
    """Run `work` in a thread and return its result, or raise its exception.

    Raises TimeoutError if it takes longer than `limit_s`, or KeyboardInterrupt at Ctrl-C. `interrupt` is then called
    from this thread. If `work` does not end soon after it, its thread is abandoned and continues in the background.
    """
    results: list[Result] = []
    failures: list[BaseException] = []
    end_event = threading.Event()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001  raised in the caller's thread
            failures.append(error)
        finally:
            end_event.set()

    threading.Thread(target=run, daemon=True).start()
    try:
        is_on_time = end_event.wait(min(limit_s, threading.TIMEOUT_MAX))
    except BaseException:
        interrupt()
        raise
    if not is_on_time:
        interrupt()
        end_event.wait(_GRACE_S)
        raise TimeoutError
    if failures:
        raise failures[0]
    return results[0]


@contextmanager
def more_memory(most_bytes: int) -> Iterator[None]:
    """Inside this context, the process can allocate at most `most_bytes` in addition to what it has; then MemoryError.

    Without effect on systems that do not tell how much memory a process has allocated.
    """
    allocated_bytes = _allocated_bytes()
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
    limit = (allocated_bytes or 0) + most_bytes
    if allocated_bytes is None or (soft_limit != resource.RLIM_INFINITY and soft_limit <= limit):
        yield
        return
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard_limit))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft_limit, hard_limit))


def _allocated_bytes() -> int | None:
    """Return the size of the process's data as Linux counts it for RLIMIT_DATA; None on other systems."""
    with suppress(OSError):
        status = Path("/proc/self/status").read_text(encoding="ascii")
        if data_kib := re.search(r"^VmData:\s*(\d+) kB$", status, re.MULTILINE):
            return int(data_kib[1]) << 10
    return None

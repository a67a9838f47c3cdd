"""Lock of a run directory, released by the kernel however its holder ends, with a line that names the holder.

The line is one JSON object in `.lock`:

    {"pid":4711,"host":"node3","started":123456,"since":"2026-01-31T10:15:00+00:00"}

It remains after the holder has ended, so it is valid only while the lock is held.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from esper_ab.contracts.errors import UsageError

LOCK_NAME = ".lock"
_TRIES = 10  # `holder` takes the lock for an instant
_TRY_S = 0.02
_STARTED_FIELD = 19  # starttime in /proc/PID/stat, counted from the field after the name: proc(5)


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The process that holds a run directory."""

    pid: int  # 0: the holder has not written its line yet
    host: str
    started: int  # start time, clock ticks since boot; with `pid` it identifies the process on `host`
    since: str  # when it took the run directory, ISO 8601

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}" if self.pid else "another process"


_UNKNOWN = Holder(pid=0, host="", started=0, since="")


def process_started(pid: int) -> int | None:
    """Return the start time of a local process, clock ticks since boot; None when it does not exist or is a zombie."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if after_name[0] in "ZX" else int(after_name[_STARTED_FIELD])


def take(run_dir: Path) -> int:
    """Lock `run_dir` and return the descriptor that holds the lock; UsageError naming the holder when it is taken."""
    descriptor = os.open(run_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    for left in reversed(range(_TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if left:
                time.sleep(_TRY_S)
    else:
        by = _named(descriptor)
        os.close(descriptor)
        raise UsageError(f"{run_dir} is in use by {by}; wait for it, stop it or choose another name")
    own = Holder(
        pid=os.getpid(), host=socket.gethostname(), started=process_started(os.getpid()) or 0,
        since=datetime.now(UTC).isoformat(timespec="seconds"),
    )  # fmt: skip
    line = msgspec.json.encode(own) + b"\n"
    os.pwrite(descriptor, line, 0)  # before the rest of an older line is cut off: the first line is always whole
    os.ftruncate(descriptor, len(line))
    return descriptor


def holder(run_dir: Path) -> Holder | None:
    """Return the present holder of `run_dir`, or None. Takes a shared lock for an instant."""
    try:
        descriptor = os.open(run_dir / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _named(descriptor)
    finally:
        os.close(descriptor)
    return None


def _named(descriptor: int) -> Holder:
    try:
        return msgspec.json.decode(os.pread(descriptor, 1000, 0).partition(b"\n")[0], type=Holder)
    except msgspec.MsgspecError:
        return _UNKNOWN

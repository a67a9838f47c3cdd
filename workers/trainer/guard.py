"""`python guard.py WORD …`: run a program as long as the process that holds this one's stdin lives, and not longer.

It is started by a worker as the leader of a session of its own. Whatever ends first, the program or the worker, even by
SIGKILL: nothing of that session is left. The exit status is the program's, 128 plus the signal that ended it, or 127
when it could not be started. It imports only the standard library: it runs beside every worker and must stay small.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_NOT_STARTED = 127


def members(session: int) -> dict[int, int]:
    """Return the processes of a session that have not ended, and the processor time of each, in clock ticks."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            if int(fields[3]) == session and fields[0] not in "ZX":
                found[int(entry.name)] = sum(map(int, fields[11:15]))
    return found


def run(words: Sequence[str]) -> int:
    """Run the program until it ends or stdin does; then end whatever it has left behind."""
    guard = os.getpid()

    def end_with_guard() -> None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(_NOT_STARTED)

    try:
        program = subprocess.Popen(words, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=end_with_guard)
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        return _NOT_STARTED
    ends = select.poll()
    ends.register(os.pidfd_open(program.pid), select.POLLIN)
    ends.register(0, select.POLLIN)
    ends.poll()
    while left := members(guard).keys() - {guard}:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    status = program.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))

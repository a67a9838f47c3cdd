"""Helpers that user code leaves running: a process, a thread that waits for it, and a fork with all descriptors."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

CODE = """
import os, pathlib, subprocess, threading, time
helper = subprocess.Popen(["sleep", "900"])
threading.Thread(target=helper.wait).start()
if not (forked := os.fork()):
    time.sleep(900)
    os._exit(0)
with open({pids!r}, "a") as file:
    file.write(f"{{helper.pid}} {{forked}} ")
"""


@contextmanager
def leftover_helpers(folder: Path) -> Iterator[str]:
    """Yield code that leaves helpers. On exit, check that all helpers are still running, and kill them."""
    file = folder / "pids"
    try:
        yield CODE.format(pids=str(file))
        pids = list(map(int, file.read_text().split()))
        assert pids
        for pid in pids:
            assert psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD), "it has ended"
    finally:
        for pid in file.read_text().split() if file.exists() else ():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

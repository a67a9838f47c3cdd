"""Launcher of workers as local processes: torch.multiprocessing's spawn context, one Process each.

Not `torch.multiprocessing.spawn`: on the first failure that ends the siblings, while here the barrier decides what a
death means. The child sets its own environment before it imports torch; nothing is inherited by fork.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from types import ModuleType

from esper_ab.contracts.messages import WorkerOrder
from esper_ab.launchers import Transport, _entry

DEFAULT_ENTRY = "workers.process.entry:main"
_SAFE_PATH = "PYTHONSAFEPATH"


class LocalWorker:
    """A started process, not a daemon (it may have children of its own), reaped by `join`."""

    def __init__(self, name: str, process: BaseProcess) -> None:
        assert process.pid is not None, "the process has been started"
        self._process = process
        self._exitcode: int | None = None
        self.name = name
        self.pid = process.pid
        self.sentinel = process.sentinel

    @property
    def exitcode(self) -> int | None:
        if self._exitcode is None:
            self._exitcode = self._process.exitcode
        return self._exitcode

    def dump_stacks(self) -> None:
        """Request the stacks by SIGUSR1; the worker's faulthandler answers even when its Python is stuck."""
        if self.exitcode is None:
            os.kill(self.pid, signal.SIGUSR1)

    def kill(self) -> None:
        if self.exitcode is None:
            self._process.kill()

    def join(self, timeout_s: float) -> bool:
        if self._exitcode is None:
            self._process.join(timeout_s)
            if self.exitcode is None:
                return False
        self._process.close()
        return True


class LocalLauncher:
    """Starts each worker as a spawned process."""

    for_gpus = True
    descriptors = 3  # two pipes of multiprocessing, a connection

    def __init__(self, entry: str = DEFAULT_ENTRY, transport: Transport = "ipc") -> None:
        self._entry = entry
        self.transport = transport

    def start(self, order: WorkerOrder) -> LocalWorker:
        import torch.multiprocessing

        process = torch.multiprocessing.get_context("spawn").Process(
            target=_entry.call_in_process, args=(self._entry, order), name=order.identity, daemon=False
        )
        # A child inherits the mask, so signals that a terminal (Ctrl-C, hang-up) or timeout(1) (SIGTERM) sends to the
        # whole group reach only this process, from the child's first instruction on. The resource tracker, which keeps
        # a blocked SIGHUP blocked, is started first: its start unblocks the other two here; later it leaves the mask.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        try:
            with nothing_of_the_user():
                resource_tracker.ensure_running()
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
                process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return LocalWorker(order.identity, process)


@contextmanager
def nothing_of_the_user() -> Iterator[None]:
    """While entered, a spawned process imports neither the main module nor, to begin with, from the working directory.

    multiprocessing has every child import the parent's main module again, for functions that may live there. A worker's
    entry does not, and a script or notebook that starts an experiment would start it again in every worker. And a child
    begins as `python -c`, for which a queue.py in the working directory comes before the standard library's, whatever
    the parent has on its sys.path, which the child is told a moment later.
    """
    main, safe = sys.modules["__main__"], os.environ.get(_SAFE_PATH)
    sys.modules["__main__"] = ModuleType("__main__")
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        if safe is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = safe

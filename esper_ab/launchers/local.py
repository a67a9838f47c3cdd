"""Launcher of workers as local processes: one Process of multiprocessing's spawn context for each worker.

`torch.multiprocessing.spawn` is not used, because it ends all processes on the first failure, whereas here a worker
that dies is replaced. The child sets its own environment before it imports torch. Nothing is inherited by fork.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from esper_ab.contracts.messages import WorkerOrder
from esper_ab.contracts.own_packages import nothing_of_the_user
from esper_ab.launchers import KeyExchange, Launcher, LauncherFactory
from esper_ab.launchers._entry import call_in_process


class LocalWorker:
    """A started process, which is not a daemon because it may have children of its own; `join` reaps the process.

    The sentinel is a pidfd. The sentinel of multiprocessing is a pipe, which a forked child of the worker keeps open
    after the worker's death.
    """

    ended_how = ""

    def __init__(self, name: str, process: BaseProcess, keys: KeyExchange | None = None) -> None:
        """Raises OSError, and ends the process, if no descriptor is free to watch the process."""
        assert process.pid is not None, "the process has been started"
        self._process = process
        self._exitcode: int | None = None
        self.name = name
        self.keys = keys
        self.pid = process.pid
        try:
            self.sentinel = os.pidfd_open(self.pid)
        except OSError:
            process.kill()
            process.join()
            process.close()
            raise

    @property
    def exitcode(self) -> int | None:
        if self._exitcode is None:
            self._exitcode = self._process.exitcode
        return self._exitcode

    def dump_stacks(self) -> None:
        """Request the stacks by SIGUSR1; the worker's faulthandler answers even if the worker's Python is stuck."""
        if self.exitcode is None:
            os.kill(self.pid, signal.SIGUSR1)

    def kill(self) -> None:
        if self.exitcode is None:
            self._process.kill()

    def join(self, timeout_s: float) -> bool:
        if self.sentinel >= 0:
            wait([self.sentinel], timeout_s)
            if self.exitcode is None:
                return False
            os.close(self.sentinel)
            self.sentinel = -1
            self._process.close()
        return True


class LocalLauncher(Launcher):
    """Starts each worker as a spawned process."""

    name = "local"
    child_processes = True
    descriptors = 4  # two pipes of multiprocessing, a pidfd, a connection

    def start(self, order: WorkerOrder) -> LocalWorker:
        ours, theirs = socket.socketpair() if order.server_key else (None, None)
        try:
            process = multiprocessing.get_context("spawn").Process(
                target=call_in_process, args=(self.entry, order, theirs), name=order.identity, daemon=False
            )
            self._spawn(process)
            return LocalWorker(order.identity, process, KeyExchange(ours) if ours else None)
        except OSError:
            if ours is not None:
                ours.close()
            raise
        finally:
            if theirs is not None:
                theirs.close()

    def _spawn(self, process: BaseProcess) -> None:
        # A child inherits the mask, so signals that a terminal (Ctrl-C, hang-up) or timeout(1) (SIGTERM) sends to the
        # whole group reach only this process, from the child's first instruction on. The resource tracker, which keeps
        # a blocked SIGHUP blocked, is started first, because its start unblocks SIGINT and SIGTERM here.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        try:
            with nothing_of_the_user():
                resource_tracker.ensure_running()
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
                process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


LAUNCHER: LauncherFactory = LocalLauncher

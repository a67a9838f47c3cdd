"""What launchers share whose workers are local processes, which the machine's start process makes.

The start process makes them by torch.multiprocessing. It imports torch once, for the preflight and for all workers; it
imports none for workers that only guard a command. `torch.multiprocessing.spawn` is not used, because it ends all
processes on the first failure, whereas here a worker that dies is replaced.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Sequence
from multiprocessing.connection import wait

import msgspec

from esper_ab.contracts.child import Child
from esper_ab.contracts.worker_order import WorkerOrder
from esper_ab.launchers import KeyExchange, Launcher, Transport
from esper_ab.launchers._start_process import DESCRIPTORS, StartedProcess, StartProcess

_BE_A_PROGRAM = "esper_ab.contracts.own_packages:become"  # a function that the start process calls, by its name


class LocalWorker:
    """A worker's process, which is not a daemon because it may have children of its own; `join` reaps the process.

    The sentinel is the socket on which the start process reports the end, so its exit code is known by then.
    """

    ended_how = ""

    def __init__(self, name: str, process: StartedProcess, keys: KeyExchange | None = None) -> None:
        """`process` has been started."""
        self._process = process
        self.name = name
        self.keys = keys
        self.pid = process.pid
        self.sentinel = process.fileno()

    @property
    def exitcode(self) -> int | None:
        return self._process.poll()

    def dump_stacks(self) -> None:
        """Request the stacks by SIGUSR1; the worker's faulthandler answers even if the worker's Python is stuck."""
        self._process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        self._process.kill()

    def join(self, timeout_s: float) -> bool:
        if self.sentinel >= 0:
            wait([self.sentinel], timeout_s)
            if self.exitcode is None:
                return False
            self.sentinel = -1
            self._process.close()
        return True


class ProcessLauncher(Launcher):
    """Starts each worker as a process of this machine. Workers end with their launcher."""

    be_a_worker = "esper_ab.launchers._entry:call_forked"  # likewise; gets the entry point and the order
    child_processes = True
    descriptors = 4  # a socket for answers, a pidfd, a connection, and a socket for the exchange of keys
    own_descriptors = DESCRIPTORS
    imports_torch_once = True

    def __init__(self, entry: str = "", transport: Transport | None = None) -> None:
        super().__init__(entry, transport)
        self._start_process: StartProcess | None = None
        self._newest: StartedProcess | None = None

    @property
    def spawned_because(self) -> str:
        return self._newest.spawned_because if self._newest is not None else ""

    def begin(self, node: str, module: str, line: bytes) -> Child:
        return Child(lambda standard: self._request(True, module, _BE_A_PROGRAM, [module], standard), line)

    def start(self, order: WorkerOrder) -> LocalWorker:
        our_socket, their_socket = socket.socketpair() if order.server_key else (None, None)
        try:
            words = [self.entry, msgspec.json.encode(order).decode()]
            descriptors = [their_socket.fileno()] if their_socket is not None else []
            process = self._started(order.needs_torch, order.identity, self.be_a_worker, words, descriptors)
        except OSError:
            if our_socket is not None:
                our_socket.close()
            raise
        finally:
            if their_socket is not None:
                their_socket.close()
        return LocalWorker(order.identity, process, KeyExchange(our_socket) if our_socket else None)

    def _started(
        self, needs_torch: bool, name: str, function: str, words: Sequence[str], descriptors: Sequence[int]
    ) -> StartedProcess:
        """Start a process; if the start process has ended, replace it once. Raises OSError if no process can start."""
        for _ in range(2):
            try:
                return _await_start(self._request(needs_torch, name, function, words, descriptors))
            except ConnectionError:
                self._give_up_start_process()
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def _request(
        self, needs_torch: bool, name: str, function: str, words: Sequence[str], descriptors: Sequence[int]
    ) -> StartedProcess:
        """Request a process from the start process, which is started first if there is none.

        All workers of an experiment need torch or none does, so the start process of an earlier experiment or of the
        preflight is replaced if it differs in that; it has no children any more.
        """
        running_process = self._start_process
        if running_process is not None and (running_process.has_ended or running_process.has_torch != needs_torch):
            self._give_up_start_process()
        if self._start_process is None:
            self._start_process = StartProcess(self.entry.partition(":")[0], has_torch=needs_torch)
        self._newest = self._start_process.start(name, function, words, descriptors)
        return self._newest

    def _give_up_start_process(self) -> None:
        if self._start_process is not None:
            self._start_process.close()
            self._start_process = None


def _await_start(process: StartedProcess) -> StartedProcess:
    """Return the process once it has been started; close it if it cannot be started."""
    try:
        process.await_start()
    except OSError:
        process.close()
        raise
    return process

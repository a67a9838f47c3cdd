"""The coordinator's side of a supervisor on another node (`contracts/supervisor`) and of the workers it starts.

A supervisor needs four descriptors, however many workers it has: the workers share one, which becomes readable when any
worker has sent its key or ended. Each supervisor has two threads, one to read and one to write, so that a hanging node
delays nothing else.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from esper_ab.contracts import link_keys
from esper_ab.contracts.files_below import open_below
from esper_ab.contracts.own_packages import child_command
from esper_ab.contracts.supervisor import NOT_STARTED, read_end
from esper_ab.contracts.unreadable import UNREADABLE
from esper_ab.contracts.worker_order import WorkerOrder
from esper_ab.launchers import KeyExchange

DESCRIPTORS = 4  # per supervisor in this process: its streams, and one that signals changes of its workers
_LEAVE_S = 5.0  # time for a supervisor to exit after its input has ended


class WorkerSaid(msgspec.Struct, frozen=True, tag="said", array_like=True):
    """The first line of the worker's output: the public key, or "" if the worker ended without sending it."""

    name: str
    line: str


class WorkerEnded(msgspec.Struct, frozen=True, tag="ended", array_like=True):
    """The worker has ended; gives the status, as in `subprocess`, and the end of the worker's standard error."""

    name: str
    status: int
    complaint: str


_decode = msgspec.json.Decoder(WorkerSaid | WorkerEnded).decode


class Carrier(Protocol):
    """A connection to a supervisor on a node, which carries lines both ways."""

    @property
    def pid(self) -> int:
        """Pid of the local process that represents the supervisor or, if there is none, the supervisor's own pid."""

    def lines(self) -> Iterator[bytes]:
        """Yield the supervisor's lines; raise ConnectionError, with the reason or "", once the supervisor has ended."""

    def write(self, line: bytes) -> None:
        """Send a line; return once the line is delivered. Raises OSError if the supervisor has ended."""

    def kill(self) -> None:
        """Kill the supervisor and thereby its workers."""

    def dismiss(self) -> None:
        """Ask the supervisor to end; called on the thread that writes to it."""

    def wait(self) -> None:
        """Wait, for a limited time, until the supervisor has ended after `dismiss`."""


class PipedSupervisor:
    """A supervisor reached through standard streams.

    `command` starts the supervisor itself or, like srun, a local process that represents it.
    """

    def __init__(self, command: Sequence[str]) -> None:
        """Raises OSError if it cannot be started."""
        self._complaint = os.memfd_create("complaint")
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaint, start_new_session=True
            )
        except OSError:
            os.close(self._complaint)
            raise
        assert self._process.stdin is not None, "a pipe"
        assert self._process.stdout is not None, "a pipe"
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout
        self.pid = self._process.pid

    def lines(self) -> Iterator[bytes]:
        with self._stdout:
            yield from self._stdout
        self._process.wait()
        last_words = read_end(self._complaint).decode(errors="replace").strip().splitlines()[-1:]
        os.close(self._complaint)
        raise ConnectionError(*last_words)

    def write(self, line: bytes) -> None:
        self._stdin.write(line)
        self._stdin.flush()

    def kill(self) -> None:
        self._process.kill()

    def dismiss(self) -> None:
        with suppress(OSError):
            self._stdin.close()

    def wait(self) -> None:
        try:
            self._process.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class NodeSupervisor:
    """The supervisor of the workers on one node; `begin` starts it."""

    def __init__(self, node: str, begin: Callable[[], Carrier]) -> None:
        """Raises OSError if it cannot be started."""
        self.node = node
        self.sentinel = os.eventfd(0, os.EFD_CLOEXEC)
        try:
            self._carrier = begin()
        except OSError:
            os.close(self.sentinel)
            raise
        self._to_say: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.changed = threading.Condition()  # guards the state of its workers
        self._workers: dict[str, NodeWorker] = {}  # those that have not ended
        self._lost = ""  # how it was lost, in words; "" if it was not
        threading.Thread(target=self._write, name=f"to {node}", daemon=True).start()
        threading.Thread(target=self._read, name=node, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._carrier.pid

    @property
    def is_reliable(self) -> bool:
        """True while the supervisor is alive and has no unconfirmed kills."""
        with self.changed:
            return not self._lost and not any(worker.suspect for worker in self._workers.values())

    def start(self, order: WorkerOrder, entry: str) -> NodeWorker:
        """Start a worker with this order and return its handle, which shows whether the start succeeded."""
        worker = NodeWorker(self, order)
        with self.changed:
            self._workers[worker.name] = worker
            if self._lost:
                self._lose()
        command = child_command("esper_ab.launchers._entry", entry, elsewhere=True)
        self.tell("begin", worker.name, command, msgspec.json.encode(order).decode() + "\n")
        return worker

    def tell(self, *message: object) -> None:
        self._to_say.put(msgspec.json.encode(message) + b"\n")

    def give_up(self) -> None:
        """Kill the local process that represents the supervisor; all of its workers then count as ended."""
        self._carrier.kill()

    def dismiss(self) -> None:
        """Ask the supervisor to end, once none of its workers is needed."""
        self._to_say.put(b"")

    def leave(self) -> None:
        """After `dismiss`, wait a limited time for the supervisor to end, and free its resources on this machine."""
        self._carrier.wait()
        with self.changed:
            os.close(self.sentinel)
            self.sentinel = -1

    def _write(self) -> None:
        with suppress(OSError):  # it is gone, which the reading thread notices
            while line := self._to_say.get():
                self._carrier.write(line)
        self._carrier.dismiss()

    def _read(self) -> None:
        error_text = ""
        try:
            for line in self._carrier.lines():
                try:
                    self._hear(_decode(line))
                except UNREADABLE:  # the sender is not our supervisor
                    self._carrier.kill()
        except ConnectionError as error:
            error_text = str(error)
        except OSError as error:  # it may still run, but cannot be heard any more
            error_text = str(error)
            self._carrier.kill()
        reason = f": {error_text}" if error_text else ""
        with self.changed:
            self._lost = f"was lost with its supervisor on {self.node}{reason}"
            self._lose()

    def _lose(self) -> None:
        for worker in self._workers.values():
            worker.end(-signal.SIGKILL, self._lost)
        self._workers = {}
        self._tell_of_change()

    def _hear(self, message: WorkerSaid | WorkerEnded) -> None:
        worker = self._workers.get(message.name)
        if worker is None:
            return
        complaint = ""
        if isinstance(message, WorkerEnded):
            if message.status == NOT_STARTED:
                complaint = f"could not be started on {self.node}: {message.complaint}"
            else:
                _note(worker.order, message.complaint)
        with self.changed:
            if isinstance(message, WorkerEnded):
                worker.end(message.status, complaint)
                del self._workers[message.name]
            else:
                worker.public_key = message.line if link_keys.is_public_key(message.line) else ""
            self._tell_of_change()

    def _tell_of_change(self) -> None:
        if self.sentinel >= 0:
            os.eventfd_write(self.sentinel, 1)
        self.changed.notify_all()


def _note(order: WorkerOrder, complaint: str) -> None:
    """Append a worker's standard error to the worker's log here, if the log can be written."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    if complaint:
        with suppress(OSError), os.fdopen(open_below(Path(order.experiment_dir), order.log_file, flags), "ab") as log:
            log.write(complaint.encode())


class _NodeKeys(KeyExchange):
    """Key exchange with a remote worker; the lines are passed on by its supervisor."""

    descriptor = -1

    def __init__(self, worker: NodeWorker, supervisor: NodeSupervisor) -> None:
        self.descriptor = supervisor.sentinel
        self._worker = worker
        self._supervisor = supervisor

    def public(self) -> str | None:
        return self._worker.public_key

    def admit(self) -> None:
        self._supervisor.tell("write", self._worker.name, "\n")

    def close(self) -> None:
        self.descriptor = -1


class NodeWorker:
    """A process that a node's supervisor has started."""

    def __init__(self, supervisor: NodeSupervisor, order: WorkerOrder) -> None:
        self._supervisor = supervisor
        self.order = order
        self.name = order.identity
        self.sentinel = supervisor.sentinel
        self.pid = supervisor.pid
        self.ended_how = ""
        self.exitcode: int | None = None
        self.suspect = False  # its supervisor was told to end it
        self.public_key: str | None = None  # known once the worker has sent its first line; "" if that was no key
        self.keys: KeyExchange | None = _NodeKeys(self, supervisor) if order.server_key else None

    def end(self, exitcode: int, end_words: str) -> None:
        """Record that the worker has ended; call it with the supervisor's lock held."""
        self.ended_how = end_words
        self.exitcode = exitcode
        if self.public_key is None:
            self.public_key = ""

    def dump_stacks(self) -> None:
        """Request the stacks by SIGUSR1."""
        if self.exitcode is None:
            self._supervisor.tell("signal", self.name, signal.SIGUSR1)

    def kill(self) -> None:
        """Ask the supervisor to kill the worker.

        If the worker still runs at the next start on that node, the supervisor is replaced.
        """
        if self.exitcode is None:
            self.suspect = True
            self._supervisor.tell("signal", self.name, signal.SIGKILL)

    def join(self, timeout_s: float) -> bool:
        with self._supervisor.changed:
            return self._supervisor.changed.wait_for(lambda: self.exitcode is not None, timeout_s)

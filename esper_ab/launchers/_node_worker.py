"""The coordinator's side of a node's supervisor: a process that stands for it here, and the workers that it has
started.

A node takes four descriptors, however many workers it has: they share one that becomes readable when one of them has
said its key or ended. Two threads per node read and write, so that nobody waits for a node that stands still.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

import msgspec

from esper_ab.contracts import link_keys
from esper_ab.contracts.messages import WorkerOrder
from esper_ab.contracts.unreadable import UNREADABLE
from esper_ab.launchers import KeyExchange, _last_words
from esper_ab.launchers._node_talk import Admit, Begin, FromSupervisor, KeySaid, Over, Signal, ToSupervisor, line
from esper_ab.launchers._supervisor import Stream

DESCRIPTORS = 4  # that a supervisor takes here: its streams, and one that shows what its workers do
_LEAVE_S = 5.0  # for a supervisor whose input has ended
_COMPLAINT_BYTES = 64 << 10  # kept of what it writes to standard error
_decode = msgspec.json.Decoder(FromSupervisor).decode


class NodeSupervisor:
    """The supervisor of one node, started by `command`."""

    def __init__(self, node: str, command: Sequence[str]) -> None:
        """OSError when it cannot be started."""
        self.node = node
        self.sentinel = os.eventfd(0, os.EFD_CLOEXEC)
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
        except OSError:
            os.close(self.sentinel)
            raise
        assert self._process.stdin is not None, "a pipe"
        assert self._process.stdout is not None, "a pipe"
        assert self._process.stderr is not None, "a pipe"
        self.pid = self._process.pid
        self._complaint = Stream(self._process.stderr, _COMPLAINT_BYTES)
        self._to_say: queue.SimpleQueue[ToSupervisor | None] = queue.SimpleQueue()
        self.changed = threading.Condition()  # guards what is known of its workers
        self._workers: dict[str, NodeWorker] = {}  # those that have not ended
        self._suspects: set[str] = set()  # told to end
        self._lost = ""  # how, in words, once it is
        threading.Thread(target=self._write, args=(self._process.stdin,), name=f"to {node}", daemon=True).start()
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), name=node, daemon=True)
        self._reader.start()

    @property
    def is_reliable(self) -> bool:
        """Whether it is there, and has ended whom it was told to end."""
        with self.changed:
            return not self._lost and not self._suspects

    def start(self, order: WorkerOrder) -> NodeWorker:
        """A worker with this order; what becomes of it shows."""
        worker = NodeWorker(self, order)
        with self.changed:
            if self._lost:
                worker.end(-signal.SIGKILL, self._lost)
                os.eventfd_write(self.sentinel, 1)
                return worker
            self._workers[worker.name] = worker
        self.tell(Begin(worker.name, msgspec.json.encode(order).decode()))
        return worker

    def tell(self, message: ToSupervisor) -> None:
        self._to_say.put(message)

    def suspect(self, name: str) -> None:
        """It was told to end this worker."""
        with self.changed:
            if name in self._workers:
                self._suspects.add(name)

    def give_up(self) -> None:
        """End the process here; all of its workers count as ended at once."""
        self._process.kill()

    def dismiss(self) -> None:
        """Have it end, when none of its workers is left that anybody needs."""
        self._to_say.put(None)

    def leave(self) -> None:
        """Wait for its end after `dismiss`, for a limited time, and free what it takes here."""
        try:
            self._process.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(_LEAVE_S)
        os.close(self.sentinel)

    def _write(self, pipe: IO[bytes]) -> None:
        with suppress(OSError), pipe:  # it is gone, which the other thread sees
            while (message := self._to_say.get()) is not None:
                pipe.write(line(message))
                if self._to_say.empty():
                    pipe.flush()

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            for text in pipe:
                try:
                    message = _decode(text)
                except UNREADABLE:  # of who is no supervisor of ours nothing is believed
                    self._process.kill()
                    break
                self._hear(message)
        self._process.wait()
        lost = self._how_lost()  # which may take a second, in which nobody else is to wait
        with self.changed:
            self._lost, self._suspects = lost, set()
            for worker in self._workers.values():
                worker.end(-signal.SIGKILL, lost)
            self._workers = {}
            self._tell_of_change()

    def _hear(self, message: FromSupervisor) -> None:
        if isinstance(message, Over) and (order := self._order_of(message.name)) and message.complaint:
            _last_words.note(order, message.complaint)
        with self.changed:
            worker = self._workers.get(message.name)
            if worker is None:
                return
            match message:
                case KeySaid(_, text):
                    worker.said = text if link_keys.is_public_key(text) else ""
                case Over(name, status, _):
                    worker.end(status, "")
                    del self._workers[name]
                    self._suspects.discard(name)
            self._tell_of_change()

    def _order_of(self, name: str) -> WorkerOrder | None:
        with self.changed:
            return self._workers[name].order if name in self._workers else None

    def _tell_of_change(self) -> None:
        os.eventfd_write(self.sentinel, 1)
        self.changed.notify_all()

    def _how_lost(self) -> str:
        said = self._complaint.rest().decode(errors="replace").strip().splitlines()[-1:]
        return f"was lost with the process beside it on {self.node}" + "".join(f": {text}" for text in said)


class _NodeKeys(KeyExchange):
    """Of a worker whose key comes by its supervisor, to whom the answer is told."""

    def __init__(self, worker: NodeWorker, supervisor: NodeSupervisor) -> None:
        super().__init__(supervisor.sentinel, -1, lambda: None)
        self._worker, self._supervisor = worker, supervisor

    def public(self) -> str | None:
        with self._supervisor.changed:
            return self._worker.said

    def admit(self) -> None:
        self._supervisor.tell(Admit(self._worker.name))


class NodeWorker:
    """A process that a node's supervisor has started."""

    def __init__(self, supervisor: NodeSupervisor, order: WorkerOrder) -> None:
        self._supervisor, self.order = supervisor, order
        self.name, self.sentinel = order.identity, supervisor.sentinel
        self.pid, self.ended_how = supervisor.pid, ""
        self.exitcode: int | None = None
        self.said: str | None = None  # its public key, once it has said something
        self.keys: KeyExchange | None = _NodeKeys(self, supervisor) if order.server_key else None

    def end(self, exitcode: int, how: str) -> None:
        """It has ended; to be called while nobody else looks."""
        self.ended_how, self.exitcode = how, exitcode
        if self.said is None:
            self.said = ""

    def dump_stacks(self) -> None:
        """Request the stacks by SIGUSR1."""
        if self.exitcode is None:
            self._supervisor.tell(Signal(self.name, signal.SIGUSR1))

    def kill(self) -> None:
        """Have its supervisor end it; a supervisor that has not by the next start on its node is given up."""
        if self.exitcode is None:
            self._supervisor.suspect(self.name)
            self._supervisor.tell(Signal(self.name, signal.SIGKILL))

    def join(self, timeout_s: float) -> bool:
        with self._supervisor.changed:
            return self._supervisor.changed.wait_for(lambda: self.exitcode is not None, timeout_s)

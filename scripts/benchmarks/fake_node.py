"""A node of a fake fleet: a process that acts as supervisor and simulates the workers it is told to start.

Each worker has its own socket on the real wire. When a round begins, all workers have been released from milestone
p and have their reports of p + 1 ready. Then all send; the round ends when all are released from p + 1.
"""

from __future__ import annotations

import json
import os
import random
import struct
import time
from pathlib import Path
from typing import Any

import msgspec
import zmq

from benchmarks import synthetic
from esper_ab.contracts.codec import decode_from_coordinator, encode
from esper_ab.contracts.messages import (
    PROTOCOL,
    Assign,
    EpisodeFinished,
    Evaluated,
    Hello,
    Ping,
    Pong,
    Ready,
    Release,
    Stop,
)
from esper_ab.contracts.worker_order import RunSpec, WorkerOrder
from workers.process.link import UNANSWERED_MS

_QUIET_S = 0.02  # between rounds, for the coordinator to come to rest
_LOOK_S = 0.001
_SLOT = struct.Struct("q")


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """The instructions that a process gets at its start."""

    index: int
    workers: int  # number of workers that it will be told to start
    cores: tuple[int, ...]  # to which it keeps
    coordinator: int  # process id
    meeting: str  # file
    results: str  # file


class Meeting:
    """A barrier between processes: a file with a count for each process."""

    def __init__(self, file: Path, index: int) -> None:
        self._file = file
        self._index = index
        self._count = 0

    @staticmethod
    def make(file: Path, processes: int) -> None:
        file.write_bytes(bytes(_SLOT.size * processes))

    def arrive(self) -> None:
        self._count += 1
        with self._file.open("r+b") as slots:
            slots.seek(self._index * _SLOT.size)
            slots.write(_SLOT.pack(self._count))

    def wait(self) -> None:
        self.arrive()
        await_all(self._file, self._count)


def await_all(file: Path, count: int) -> None:
    """Return when all processes have arrived `count` times."""
    while min(counter for (counter,) in _SLOT.iter_unpack(file.read_bytes())) < count:
        time.sleep(_LOOK_S)


class Fake:
    """One worker, with its socket, its assignment and the message to send next."""

    def __init__(self, context: zmq.Context[Any], order: WorkerOrder, draw: random.Random) -> None:
        self.name = order.identity
        self.socket = context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.IDENTITY, order.identity.encode())
        self.socket.setsockopt(zmq.LINGER, 2000)
        self.socket.setsockopt(zmq.HEARTBEAT_IVL, int(order.beat_s * 1000))  # as for a worker on a different machine
        self.socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, UNANSWERED_MS)
        self.public = ""
        if order.server_key:
            public_key_bytes, secret = zmq.curve_keypair()
            self.public = public_key_bytes.decode()
            self.socket.setsockopt(zmq.CURVE_SERVERKEY, order.server_key.encode())
            self.socket.setsockopt(zmq.CURVE_PUBLICKEY, public_key_bytes)
            self.socket.setsockopt(zmq.CURVE_SECRETKEY, secret)
        self._order = order
        self._draw = draw
        self.spec: RunSpec | None = None
        self.data = b""

    def connect(self) -> None:
        """Connect and send Hello."""
        self.socket.connect(self._order.endpoint)
        order = self._order
        message = Hello(
            worker=order.worker,
            incarnation=order.incarnation,
            protocol=PROTOCOL,
            pid=os.getpid(),
            uuids=order.lane.uuids,
            torch_version="none",
            sources="",
        )
        self.socket.send(encode(message))

    @property
    def run(self) -> str:
        assert self.spec is not None, "it has its orders"
        return self.spec.ref.name

    def prepare(self, milestone: int) -> None:
        """Make the report of `milestone` ready to be sent."""
        assert self.spec is not None, "it has its orders"
        report: Ready | EpisodeFinished | Evaluated
        if milestone == 0:
            report = Ready(run=self.spec.ref, warm_up_s=0.1)
        elif milestone <= self.spec.episodes:
            record = synthetic.episode(self.spec, milestone - 1, self._draw)
            report = EpisodeFinished(run=self.spec.ref, record=record)
        else:
            report = Evaluated(run=self.spec.ref, record=synthetic.evaluation(self.spec, self._draw))
        self.data = encode(report)

    def send(self) -> None:
        self.socket.send(self.data)


class _Supervisor:
    """All workers of the node, and the coordinator's end of standard input."""

    def __init__(self, node: Node) -> None:
        self._context = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, node.workers + 16)
        self._draw = random.Random(node.index)
        self._unfinished_line = b""
        self._poller = zmq.Poller()
        self._poller.register(0, zmq.POLLIN)
        self.fakes: dict[str, Fake] = {}
        self._by_socket: dict[Any, Fake] = {}

    def until(self, count: int, kind: type) -> dict[str, float]:
        """Return when each run got its message of `kind` (monotonic, s); ends after `count` runs or at shutdown."""
        times: dict[str, float] = {}
        while len(times) < count:
            for ready_socket, _ in self._poller.poll():
                if ready_socket == 0:
                    if not self._hear():
                        return times
                    continue
                fake_worker = self._by_socket[ready_socket]
                data = ready_socket.recv()
                now_s = time.monotonic()
                message = decode_from_coordinator(data)
                if isinstance(message, Assign):
                    fake_worker.spec = message.spec
                elif isinstance(message, Ping):
                    ready_socket.send(encode(Pong()))
                elif isinstance(message, Stop):
                    say("ended", fake_worker.name, 0, "")
                if isinstance(message, kind):
                    times[fake_worker.run] = now_s
        return times

    def _hear(self) -> bool:
        """Read a message from the coordinator's launcher; return False at shutdown."""
        part = os.read(0, 1 << 16)
        *texts, self._unfinished_line = (self._unfinished_line + part).split(b"\n")
        for text in texts:
            match json.loads(text):
                case ["begin", name, _, order]:
                    fake_worker = Fake(self._context, msgspec.json.decode(order, type=WorkerOrder), self._draw)
                    self.fakes[name] = self._by_socket[fake_worker.socket] = fake_worker
                    self._poller.register(fake_worker.socket, zmq.POLLIN)
                    if fake_worker.public:
                        say("said", name, fake_worker.public)
                    else:
                        fake_worker.connect()
                case ["write", name, _]:
                    self.fakes[name].connect()
        return part != b""


def say(*message: object) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def main(told_as_json: str) -> None:
    """Start when told, take part in every round, record all times, and stay until the end."""
    node = msgspec.json.decode(told_as_json, type=Node)
    os.sched_setaffinity(0, node.cores)
    supervisor = _Supervisor(node)
    meeting_point = Meeting(Path(node.meeting), node.index)
    meeting_point.arrive()
    clock = (~node.coordinator << 3) | 2  # clock_getcpuclockid(3): core time of all threads of the process
    assignment_times = supervisor.until(node.workers, Assign)
    start_times = {"at": max(assignment_times.values()), "coordinator_s": time.clock_gettime(clock)}
    fakes = list(supervisor.fakes.values())
    rounds = []
    for milestone in range(max(fake_worker.spec.episodes for fake_worker in fakes if fake_worker.spec) + 2):
        for fake_worker in fakes:
            fake_worker.prepare(milestone)
        meeting_point.wait()
        time.sleep(_QUIET_S)
        cpu_s_before = time.clock_gettime(clock)
        sent_times = {}
        for fake_worker in fakes:
            sent_times[fake_worker.run] = time.monotonic()
            fake_worker.send()
        release_times = supervisor.until(len(fakes), Release)
        meeting_point.wait()
        rounds.append(
            {"sent": sent_times, "released": release_times, "coordinator_s": time.clock_gettime(clock) - cpu_s_before}
        )
    Path(node.results).write_bytes(msgspec.json.encode({"started": start_times, "rounds": rounds}))
    supervisor.until(1, type(None))  # until standard input ends
    os._exit(0)

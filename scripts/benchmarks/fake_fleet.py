"""Workers without work: many per process, each with its own socket on the real wire, all of whose reports come at once.

A fleet does what a launcher does, for a coordinator in this process. Its processes keep off the first core, where
there is another, so that the coordinator always has one. A round: everybody has been released from milestone p and has
its report of p + 1 ready; all send; the round is over when all are released from p + 1.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Literal

import zmq

from benchmarks import synthetic
from esper_ab.contracts.codec import decode_from_coordinator, encode, split
from esper_ab.contracts.messages import (
    PROTOCOL,
    Assign,
    EpisodeFinished,
    Evaluated,
    Hello,
    Ready,
    Release,
    RunSpec,
    WorkerOrder,
)
from esper_ab.launchers._places import LanePlaces

_QUIET_S = 0.02  # between rounds, for the coordinator to come to rest
_SPAWN = multiprocessing.get_context("spawn")


@dataclass
class FakeWorker:
    """What a launcher returns, of a worker that lives in one of the fleet's processes."""

    name: str
    pid: int
    sentinel: int
    exitcode: int | None = None
    keys = None
    ended_how = ""

    def dump_stacks(self) -> None:
        """It has none of its own."""

    def kill(self) -> None:
        self.exitcode = 0

    def join(self, timeout_s: float) -> bool:
        self.exitcode = 0
        return True


@dataclass
class Fleet(LanePlaces):
    """A launcher; `rounds` after the experiment."""

    name = "fake fleet"
    child_processes = True  # several in one
    processes = 0  # of this machine, that a worker takes: they are there already

    pools: int  # processes that its workers live in
    workers: int  # in all
    transport: Literal["ipc"] = "ipc"
    descriptors = 3  # per worker, of the coordinator: a sentinel with both ends, a connection
    _started: int = 0
    _pools: list[tuple[Any, Connection]] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._barrier = _SPAWN.Barrier(self.pools)  # kept: with its last name a semaphore is gone
        cores = sorted(os.sched_getaffinity(0))
        for index in range(self.pools):
            ours, theirs = _SPAWN.Pipe()
            count = len(range(index, self.workers, self.pools))
            process = _SPAWN.Process(
                target=_pool, args=(theirs, self._barrier, count, index, cores[1:] or cores, os.getpid()),
                daemon=True,
            )  # fmt: skip
            process.start()
            self._pools.append((process, ours))

    def start(self, order: WorkerOrder) -> FakeWorker:
        process, pipe = self._pools[self._started % self.pools]
        self._started += 1
        pipe.send_bytes(encode(order))
        sentinel, end = os.pipe()
        self._ends += [sentinel, end]
        return FakeWorker(name=order.identity, pid=process.pid, sentinel=sentinel)

    def rounds(self) -> list[dict[str, Any]]:
        """What the processes saw: a list of rounds, each with the moments (monotonic, s) of every run."""
        seen = [pipe.recv() for _, pipe in self._pools]
        for process, _ in self._pools:
            process.join()
        for descriptor in self._ends:
            os.close(descriptor)
        return [
            {
                "sent": {run: at for pool in parts for run, at in pool["sent"].items()},
                "released": {run: at for pool in parts for run, at in pool["released"].items()},
                "coordinator_s": parts[0]["coordinator_s"],
            }
            for parts in zip(*seen, strict=True)
        ]


class _Fake:
    """One worker: a socket, its orders, the frame to send next."""

    def __init__(self, context: zmq.Context[Any], order: WorkerOrder, draw: random.Random) -> None:
        self.socket = context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.IDENTITY, order.identity.encode())
        self.socket.setsockopt(zmq.LINGER, 2000)
        self.socket.setsockopt(zmq.IMMEDIATE, 1)
        self.socket.connect(order.endpoint)
        self._order, self._draw = order, draw
        self.spec: RunSpec | None = None
        self._record: Any = None
        self.frames: list[bytes] = []

    def hello(self) -> None:
        order = self._order
        message = Hello(
            worker=order.worker, incarnation=order.incarnation, protocol=PROTOCOL, pid=os.getpid(),
            uuids=order.lane.uuids, torch_version="none", sources="",
        )  # fmt: skip
        self.socket.send(encode(message))

    def prepare(self, milestone: int) -> None:
        """The report of `milestone`, ready to be sent."""
        assert self.spec is not None, "it has its orders"
        report: Ready | EpisodeFinished | Evaluated
        if milestone == 0:
            report = Ready(run=self.spec.ref, warm_up_s=0.1)
        elif milestone <= self.spec.episodes:
            record = synthetic.episode(self.spec, milestone - 1, self._draw)
            report = EpisodeFinished(run=self.spec.ref, seq=milestone, record=record)
        else:
            report = Evaluated(run=self.spec.ref, seq=milestone, record=synthetic.evaluation(self.spec, self._draw))
        self.frames = split(encode(report), milestone)

    def send(self) -> None:
        for frame in self.frames:
            self.socket.send(frame)


def _pool(pipe: Connection, barrier: Any, count: int, index: int, cores: list[int], coordinator: int) -> None:
    os.sched_setaffinity(0, cores)
    context = zmq.Context()
    context.set(zmq.MAX_SOCKETS, count + 16)
    draw = random.Random(index)
    fakes = [_Fake(context, decode_order(pipe.recv_bytes()), draw) for _ in range(count)]
    poller = zmq.Poller()
    for fake in fakes:
        poller.register(fake.socket, zmq.POLLIN)
        fake.hello()
    by_socket = {fake.socket: fake for fake in fakes}
    _until(poller, by_socket, count, Assign)
    clock = (~coordinator << 3) | 2  # clock_getcpuclockid(3): the time on a core of all threads of that process
    rounds = []
    last = max(fake.spec.episodes for fake in fakes if fake.spec) + 1
    for milestone in range(last + 1):
        for fake in fakes:
            fake.prepare(milestone)
        barrier.wait()
        time.sleep(_QUIET_S)
        before = time.clock_gettime(clock)
        sent = {}
        for fake in fakes:
            sent[fake.spec.ref.name] = time.monotonic()
            fake.send()
        released = _until(poller, by_socket, count, Release)
        barrier.wait()
        rounds.append({"sent": sent, "released": released, "coordinator_s": time.clock_gettime(clock) - before})
    pipe.send(rounds)
    context.destroy(linger=2000)


def decode_order(data: bytes) -> WorkerOrder:
    """The order as the launcher was given it."""
    import msgspec

    return msgspec.msgpack.decode(data, type=WorkerOrder)


def _until(poller: Any, fakes: dict[Any, _Fake], count: int, kind: type) -> dict[str, float]:
    """When each run got its message of `kind`; returns when all have."""
    found: dict[str, float] = {}
    while len(found) < count:
        for socket, _ in poller.poll():
            data, now = socket.recv(), time.monotonic()
            message = decode_from_coordinator(data)
            if isinstance(message, kind):
                fake = fakes[socket]
                if isinstance(message, Assign):
                    fake.spec = message.spec
                assert fake.spec is not None, "it has its orders"
                found[fake.spec.ref.name] = now
    return found

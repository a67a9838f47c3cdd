"""The workers: one seat per lane, who sits there, how it is started, what its log says, how all are stopped."""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from esper_ab.contracts.errors import WorkerFailed
from esper_ab.contracts.messages import RunSpec, Stop, WorkerOrder
from esper_ab.control import descriptors
from esper_ab.control.hub import Hub
from esper_ab.launchers import Launcher, Worker
from esper_ab.plan.blocks import Plan

LOG_LINES = 20
STACK_LINES = 100  # stacks of a few threads, innermost frame first
_LOG_END_BYTES = 64 << 10
_ASK_S = 0.1  # between two questions whether somebody does not want to wait
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 8.0  # between two tries to start a worker
_SPARE_DESCRIPTORS = 8  # a start takes that many for a moment
_KILL_S = 2.0  # for the kernel to end a killed process; a thread is abandoned


class _Nobody:
    """In the place of a worker that could not be started."""

    name, pid, sentinel = "", 0, -1
    exitcode: int | None = None

    def dump_stacks(self) -> None: ...

    def kill(self) -> None: ...

    def join(self, timeout_s: float) -> bool:
        return True


@dataclass(kw_only=True)
class Delay:
    """A start that has to be tried again, because something was lacking that may be there later."""

    lack: str
    since: float  # monotonic, s
    pause_s: float
    due: float  # monotonic, s: the next try


@dataclass(kw_only=True)
class Seat:
    """One lane and its worker."""

    order: WorkerOrder
    worker: Worker = field(default_factory=_Nobody)
    delay: Delay | None = None  # None once the worker was started
    greeted: bool = False  # has said Hello
    run: RunSpec | None = None  # assigned and not done
    ended_at: float | None = None  # monotonic, s
    fault: str = ""  # why it is to be ended
    told: str = ""  # what it said about that, for want of a log

    @property
    def identity(self) -> str:
        return self.order.identity

    @property
    def title(self) -> str:
        return f"worker {self.identity} on {self.order.lane.name}"


class Fleet:
    """All seats of an experiment."""

    def __init__(self, run_dir: Path, hub: Hub) -> None:
        self._run_dir = run_dir
        self._hub = hub
        self._launcher: Launcher | None = None
        self._seats: dict[str, Seat] = {}  # by lane
        self._by_identity: dict[str, Seat] = {}
        self._stuck: list[Worker] = []  # killed and not gone yet

    def start(self, plan: Plan, launcher: Launcher, incarnations: Mapping[str, int]) -> None:
        """Start one worker per lane, without waiting for any; `incarnations`: how often each was started before.

        What is lacking for some is the `delay` of their seats: `try_again`.
        """
        self._launcher = launcher
        for index, lane in enumerate(plan.lanes):
            worker = f"w{index:02d}"
            incarnation = incarnations.get(worker, 0) + 1
            order = WorkerOrder(
                endpoint=self._hub.endpoint,
                worker=worker,
                incarnation=incarnation,
                lane=lane,
                arithmetic=plan.experiment.arithmetic,
                run_dir=str(self._run_dir),
                log_file=f"logs/{worker}.log",
            )
            seat = Seat(order=order)
            self._seats[lane.name] = self._by_identity[seat.identity] = seat
            self._start(seat, time.monotonic())

    def end(self, seat: Seat, grace_s: float) -> None:
        """Have the seat's worker ended: by itself within `grace_s`, or killed."""
        self._hub.send(seat.identity, Stop(reason="another worker takes the place of this one"))
        if seat.ended_at is None:
            self._hub.unwatch(seat.worker.sentinel)
            seat.ended_at = time.monotonic()
        if not seat.worker.join(grace_s):
            seat.worker.kill()
            if not seat.worker.join(_KILL_S):
                self._stuck.append(seat.worker)

    def restart(self, seat: Seat) -> None:
        """Start the next incarnation of a worker that was ended; the seat's run stays. It may be late, as `start`."""
        del self._by_identity[seat.identity]
        seat.order = msgspec.structs.replace(seat.order, incarnation=seat.order.incarnation + 1)
        self._by_identity[seat.identity] = seat
        seat.greeted, seat.ended_at, seat.fault, seat.told = False, None, "", ""
        self._start(seat, time.monotonic())

    def try_again(self, now: float, limit_s: float) -> list[Seat]:
        """Start the workers whose delay is over; the seats of those that were started.

        WorkerFailed when a start has been delayed for longer than `limit_s`.
        """
        due = [seat for seat in self if seat.delay is not None and now >= seat.delay.due]
        for seat in due:
            self._start(seat, now)
            if seat.delay is not None and now - seat.delay.since >= limit_s:
                raise WorkerFailed(f"{seat.title} could not be started for {limit_s:.0f} s: {seat.delay.lack}")
        return [seat for seat in due if seat.delay is None]

    def _start(self, seat: Seat, now: float) -> None:
        """Start the worker of the seat's order, or have its start delayed for twice as long as the last time."""
        assert self._launcher is not None, "the fleet has been started"
        try:
            if self._launcher.transport == "ipc":  # where a connection that finds no descriptor ends this process
                descriptors.require(self._launcher.descriptors + _SPARE_DESCRIPTORS)
            with descriptors.reserve():
                seat.order = msgspec.structs.replace(seat.order, key_file=self._hub.admit(seat.identity))
                seat.worker = self._launcher.start(seat.order)
        except OSError as error:
            if error.errno not in descriptors.PASSING:
                raise
            before = seat.delay or Delay(lack="", since=now, pause_s=_FIRST_PAUSE_S / 2, due=now)
            pause_s = min(2 * before.pause_s, _LONGEST_PAUSE_S)
            seat.worker = _Nobody()
            seat.delay = Delay(
                lack=descriptors.PASSING[error.errno], since=before.since, pause_s=pause_s, due=now + pause_s
            )
            return
        seat.delay = None
        self._hub.watch(seat.worker.sentinel)

    def __iter__(self) -> Iterator[Seat]:
        return iter(self._seats.values())

    def on_lane(self, lane: str) -> Seat:
        return self._seats[lane]

    def of(self, identity: str) -> Seat | None:
        """The seat of a worker; None for an earlier incarnation."""
        return self._by_identity.get(identity)

    def note_end(self, sentinel: int, now: float) -> None:
        """The worker with this sentinel has ended; its last words may still be on their way."""
        for seat in self:
            if seat.worker.sentinel == sentinel and seat.ended_at is None:
                seat.ended_at = now
                self._hub.unwatch(sentinel)

    def log_end(self, seat: Seat, n_lines: int) -> str:
        """The last `n_lines` of what the worker wrote, headed by the file's name; "" when it wrote nothing.

        A worker may give each of its runs a log of its own: what was written last counts.
        """
        names = [seat.order.log_file, *([seat.run.log_file] if seat.run else [])]
        written = [path for path in (self._run_dir / name for name in names) if path.is_file() and path.stat().st_size]
        if not written:
            return ""
        path = max(written, key=lambda file: file.stat().st_mtime_ns)
        try:
            with descriptors.reserve(), path.open("rb") as log:
                log.seek(max(0, path.stat().st_size - _LOG_END_BYTES))
                lines = deque(log.read().decode(errors="replace").splitlines(), maxlen=n_lines)
        except OSError as error:
            return f"{path} cannot be read: {error.strerror}"
        return "\n".join([f"the end of {path}:", *(f"  {line}" for line in lines)])

    def stop(self, reason: str, grace_s: float, at_once: Callable[[], bool]) -> bool:
        """End all workers: those that can be told get `grace_s` to leave by themselves, the others are killed.

        `at_once`: asked meanwhile whether somebody does not want to wait; returned is whether somebody did not.
        """
        told = [seat for seat in self if self._hub.send(seat.identity, Stop(reason=reason))]
        deadline = time.monotonic() + grace_s
        hurried = at_once()
        for seat in told:
            while not hurried and not seat.worker.join(min(_ASK_S, max(0.0, deadline - time.monotonic()))):
                if time.monotonic() >= deadline:
                    break
                hurried = at_once()
        for seat in self:
            if seat.worker.exitcode is None:
                seat.worker.kill()
        for seat in self:
            seat.worker.join(grace_s)
        for worker in self._stuck:
            worker.join(_KILL_S)
        return hurried


def ending(exitcode: int | None) -> str:
    """How a worker ended, in words."""
    if exitcode is None or exitcode >= 0:
        return f"ended with exit status {exitcode or 0}"
    name = signal.Signals(-exitcode).name
    hint = " (the kernel does that when memory runs out)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"

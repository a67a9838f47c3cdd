"""The worker processes or threads, one per lane: start them, end them and read their logs."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from esper_ab.contracts.errors import WorkerFailed
from esper_ab.contracts.messages import Stop
from esper_ab.contracts.process_endings import how_ended
from esper_ab.contracts.regular_file import open_to_read
from esper_ab.contracts.run_files import LOGS
from esper_ab.contracts.trainer import is_guarded
from esper_ab.contracts.worker_order import UsersShell, WorkerOrder
from esper_ab.control import descriptors
from esper_ab.control.hub import Hub
from esper_ab.control.keys import worker_of
from esper_ab.control.rules import waves
from esper_ab.health.control_groups import OomWatch
from esper_ab.launchers import KeyExchange, Launcher, Worker
from esper_ab.plan.plan import Plan

LOG_LINES = 20
_LOG_END_BYTES = 64 << 10
_ASK_S = 0.1  # between two calls of `at_once`
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 8.0  # between two tries to start a worker
_SPARE_DESCRIPTORS = 8  # a start takes this many for a moment
_LOST_AFTER_S = 60.0  # workers on other nodes must survive a coordinator that hangs for 45 s
_KILL_S = 2.0  # time for the kernel to end a killed process; a thread is abandoned after it


class _Nobody:
    """Stands in for a worker that could not be started."""

    name = ""
    pid = 0
    sentinel = -1
    exitcode: int | None = None
    keys: KeyExchange | None = None
    ended_how = ""

    def dump_stacks(self) -> None: ...

    def kill(self) -> None: ...

    def join(self, timeout_s: float) -> bool:
        return True


@dataclass(kw_only=True)
class Delay:
    """A failed start that will be retried, because the missing resource may become available."""

    lack: str
    since: float  # monotonic, s
    pause_s: float
    due: float  # monotonic, s: the next try


@dataclass(kw_only=True, eq=False)
class WorkerHandle:
    """The current worker of one lane."""

    order: WorkerOrder
    worker: Worker = field(default_factory=_Nobody)
    waits: bool = True  # whether it waits for its turn to start
    delay: Delay | None = None  # None once the worker has been started
    watched: bool = False  # whether `handle_event` will report its end
    oom: OomWatch | None = None  # counts from its start; None for a worker on another machine

    @property
    def identity(self) -> str:
        return self.order.identity


@dataclass(frozen=True, kw_only=True, eq=False)
class _Ending:
    """A worker that was asked to exit."""

    handle: WorkerHandle
    deadline: float  # monotonic, s: first for the worker to end by itself, then for it to die after a kill
    killed: bool = False


class Fleet:
    """The workers of an experiment, by lane."""

    def __init__(self, experiment_dir: Path, hub: Hub, shell: UsersShell | None = None) -> None:
        """`shell`: what the user's programs inherit."""
        self._experiment_dir = experiment_dir
        self._shell = shell
        self._hub = hub
        self._launcher: Launcher | None = None
        self._handles: dict[str, WorkerHandle] = {}  # by lane
        self._by_worker: dict[str, WorkerHandle] = {}
        self._watching: dict[int, dict[tuple[str, str], WorkerHandle]] = {}  # descriptor -> lane and event -> worker
        self._delayed: dict[str, WorkerHandle] = {}  # by lane: workers whose start will be retried
        self._waves = waves.Waves(waves.AT_ONCE)
        self._endings: list[_Ending] = []
        self._stuck: list[Worker] = []  # killed, but not gone

    def start(self, plan: Plan, launcher: Launcher, incarnations: Mapping[str, int]) -> None:
        """Start the first workers, one per lane, without waiting for them; `start_due` starts the rest.

        `incarnations`: the number of earlier starts of each worker.
        """
        self._launcher = launcher
        trainer = plan.experiment.trainer
        needs_torch = not trainer or not is_guarded(trainer)
        for index, lane in enumerate(plan.lanes):
            worker = f"w{index:02d}"
            incarnation = incarnations.get(worker, 0) + 1
            order = WorkerOrder(
                endpoint=self._hub.endpoint,
                worker=worker,
                incarnation=incarnation,
                lane=lane,
                arithmetic=plan.experiment.arithmetic,
                experiment_dir=str(self._experiment_dir),
                log_file=f"{LOGS}/{worker}.log",
                shell=self._shell,
                needs_torch=needs_torch,
            )
            self._handles[lane.name] = self._by_worker[worker] = WorkerHandle(order=order)
            self._waves.ask(lane.name)
        for name in self._waves.turns():
            self._start(self._handles[name], time.monotonic())

    def greeted(self, identity: str) -> None:
        """Note that this worker has said Hello, so that another one may start."""
        handle = self._by_worker.get(worker_of(identity))
        if handle is not None and handle.identity == identity:
            self._waves.over(handle.order.lane.name)

    def end(self, handle: WorkerHandle, grace_s: float) -> None:
        """Ask the worker to end, and kill it after `grace_s`.

        Returns at once; `ended` reports when the worker is gone.
        """
        self._hub.send(handle.identity, Stop(reason="another worker replaces this one"))
        self._unwatch(handle)
        self._waves.over(handle.order.lane.name)
        self._endings.append(_Ending(handle=handle, deadline=time.monotonic() + grace_s))

    @property
    def any_ending(self) -> bool:
        """True while `ended` has to be polled often."""
        return bool(self._endings)

    def ended(self, now_s: float) -> list[WorkerHandle]:
        """Return the workers that have ended since the last call, including those that could not be killed."""
        ended_workers: list[WorkerHandle] = []
        running_endings: list[_Ending] = []
        for worker_ending in self._endings:
            worker = worker_ending.handle.worker
            if worker.join(0.0):
                ended_workers.append(worker_ending.handle)
            elif now_s < worker_ending.deadline:
                running_endings.append(worker_ending)
            elif not worker_ending.killed:
                worker.kill()
                running_endings.append(replace(worker_ending, killed=True, deadline=now_s + _KILL_S))
            else:
                self._stuck.append(worker)
                ended_workers.append(worker_ending.handle)
        self._endings = running_endings
        return ended_workers

    def restart(self, handle: WorkerHandle) -> None:
        """Queue the next incarnation of a worker that has ended; `start_due` starts it."""
        handle.order = msgspec.structs.replace(handle.order, incarnation=handle.order.incarnation + 1)
        self._ask_for_turn(handle)

    def _ask_for_turn(self, handle: WorkerHandle) -> None:
        handle.waits = True
        self._delayed.pop(handle.order.lane.name, None)
        self._waves.ask(handle.order.lane.name)

    def start_due(self, now_s: float, limit_s: float) -> list[WorkerHandle]:
        """Start queued workers whose turn it is, and retry delayed starts that are due.

        Returns the handles of workers that were started or newly delayed. Raises WorkerFailed when a start has been
        delayed for longer than `limit_s`.
        """
        for handle in tuple(self._delayed.values()):
            if handle.delay is not None and now_s >= handle.delay.due:
                self._ask_for_turn(handle)
        news = []
        for lane in self._waves.turns():
            handle = self._handles[lane]
            delayed_before = handle.delay is not None
            self._start(handle, now_s)
            if handle.delay is None or not delayed_before:
                news.append(handle)
            elif now_s - handle.delay.since >= limit_s:
                title = f"worker {handle.identity} on {lane}"
                raise WorkerFailed(f"{title} could not be started within {limit_s:.0f} s: {handle.delay.lack}")
        return news

    def _start(self, handle: WorkerHandle, now_s: float) -> None:
        """Start the handle's worker; if a resource is missing, back off for twice as long as the last time."""
        assert self._launcher is not None, "the fleet has been started"
        handle.waits = False
        try:
            if self._launcher.transport == "ipc":  # a connection without a free descriptor would end us
                descriptors.require(self._launcher.descriptors + _SPARE_DESCRIPTORS)
            with descriptors.reserve():
                handle.worker = self._started(handle, self._launcher)
        except OSError as error:
            if error.errno not in descriptors.PASSING:
                raise
            delay_before = handle.delay or Delay(lack="", since=now_s, pause_s=_FIRST_PAUSE_S / 2, due=now_s)
            pause_s = min(2 * delay_before.pause_s, _LONGEST_PAUSE_S)
            self._waves.over(handle.order.lane.name)
            self._delayed[handle.order.lane.name] = handle
            handle.worker = _Nobody()
            lack = descriptors.PASSING[error.errno]
            handle.delay = Delay(lack=lack, since=delay_before.since, pause_s=pause_s, due=now_s + pause_s)
            return
        handle.delay = None
        handle.watched = True
        self._watch(handle.worker.sentinel, handle, "end")
        if handle.worker.keys is not None:
            self._watch(handle.worker.keys.descriptor, handle, "key")

    def _started(self, handle: WorkerHandle, launcher: Launcher) -> Worker:
        """Start a worker with the handle's order and admit it to the hub. Raises OSError if it cannot be started."""
        handle.oom = None if launcher.nodes else OomWatch()
        handle.order = msgspec.structs.replace(
            launcher.bound(handle.order),
            server_key=self._hub.admit(handle.identity),
            lost_after_s=_LOST_AFTER_S if launcher.nodes else 0.0,
            beat_s=self._hub.beat_s,
        )
        return launcher.start(handle.order)

    @property
    def on_each_machine(self) -> int:
        """Number of workers per machine, if they are spread evenly."""
        nodes = len(self._launcher.nodes) if self._launcher is not None else 0
        return math.ceil(len(self._handles) / max(1, nodes))

    def __iter__(self) -> Iterator[WorkerHandle]:
        return iter(self._handles.values())

    def on_lane(self, lane: str) -> WorkerHandle:
        return self._handles[lane]

    def handle_event(self, descriptor: int) -> list[str]:
        """Handle an event on `descriptor`, and return the lanes whose workers have ended by themselves.

        A worker that has sent its public key on `descriptor` is admitted. Events of earlier incarnations are ignored.
        """
        ended_lanes = []
        for (lane, descriptor_kind), handle in tuple(self._watching.get(descriptor, {}).items()):
            if descriptor_kind == "key":
                self._hear_key(handle)
            elif handle.worker.exitcode is not None:
                self._unwatch(handle)
                ended_lanes.append(lane)
        return ended_lanes

    def _hear_key(self, handle: WorkerHandle) -> None:
        keys = handle.worker.keys
        public_key_text = keys.public() if keys is not None else None
        if keys is None or public_key_text is None:
            return
        if public_key_text:
            self._hub.register(handle.identity, public_key_text)
            keys.admit()
        self._close_keys(handle)

    def _close_keys(self, handle: WorkerHandle) -> None:
        keys = handle.worker.keys
        if keys is not None and keys.descriptor >= 0:
            self._unwatch_descriptor(keys.descriptor, handle, "key")
            keys.close()

    def _unwatch(self, handle: WorkerHandle) -> None:
        if handle.watched:
            self._unwatch_descriptor(handle.worker.sentinel, handle, "end")
            self._close_keys(handle)
            handle.watched = False

    def _watch(self, descriptor: int, handle: WorkerHandle, descriptor_kind: str) -> None:
        """Make the hub report events on a descriptor, which several workers may share."""
        if descriptor not in self._watching:
            self._hub.watch(descriptor, edge_triggered=True)
        self._watching.setdefault(descriptor, {})[handle.order.lane.name, descriptor_kind] = handle

    def _unwatch_descriptor(self, descriptor: int, handle: WorkerHandle, descriptor_kind: str) -> None:
        watchers = self._watching[descriptor]
        del watchers[handle.order.lane.name, descriptor_kind]
        if not watchers:
            del self._watching[descriptor]
            self._hub.unwatch(descriptor)

    def log_end(self, handle: WorkerHandle, n_lines: int, run_log: str) -> str:
        """Return the last `n_lines` of the worker's log, after a line with the file's name; "" if the log is empty.

        `run_log`: the log of the current run; "" if there is none. Of the two logs, the one written last is used.
        """
        path = self._experiment_dir / handle.order.log_file
        try:
            if run_log:
                path = _last_written(path, self._experiment_dir / run_log)
            if not _size_of(path):
                return ""
            with descriptors.reserve(), open_to_read(path) as log:
                log.seek(max(0, path.stat().st_size - _LOG_END_BYTES))
                lines = deque(log.read().decode(errors="replace").splitlines(), maxlen=n_lines)
        except OSError as error:
            return f"cannot read {error.filename or path}: {error.strerror}"
        return "\n".join([f"the end of {path}:", *(f"  {line}" for line in lines)])

    def stop(self, reason: str, grace_s: float, is_impatient: Callable[[], bool]) -> bool:
        """Stop all workers. Workers that can be reached get `grace_s` to exit; then all that still run are killed.

        `at_once()` is polled during the grace period. Returns True if it cut the grace period short.
        """
        notified_handles = [handle for handle in self if self._hub.send(handle.identity, Stop(reason=reason))]
        deadline = time.monotonic() + grace_s
        is_hurried = is_impatient()
        for handle in notified_handles:
            while not is_hurried and not handle.worker.join(min(_ASK_S, max(0.0, deadline - time.monotonic()))):
                if time.monotonic() >= deadline:
                    break
                is_hurried = is_impatient()
        for handle in self:
            if handle.worker.exitcode is None:
                handle.worker.kill()
        for handle in self:
            self._join_killed(handle, reason, grace_s, is_notified=handle in notified_handles)
        for worker in self._stuck:
            worker.join(_KILL_S)
        return is_hurried

    def _join_killed(self, handle: WorkerHandle, reason: str, grace_s: float, *, is_notified: bool) -> None:
        """Wait for a worker that was killed. A thread cannot be killed: it is told to stop once it has connected."""
        deadline = time.monotonic() + grace_s
        while not handle.worker.join(min(_ASK_S, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return
            is_notified = is_notified or self._hub.send(handle.identity, Stop(reason=reason))


def _size_of(path: Path) -> int:
    """Return the size of a file in bytes; 0 if there is none."""
    return path.stat().st_size if path.is_file() else 0


def _last_written(log: Path, run_log: Path) -> Path:
    """Return the log that was written last; an empty or missing one counts only if both are."""
    if not _size_of(run_log):
        return log
    if not _size_of(log):
        return run_log
    return max(log, run_log, key=lambda path: path.stat().st_mtime_ns)


def ending(handle: WorkerHandle) -> str:
    """Describe how a worker ended; say that memory ran out if the kernel counted an OOM kill."""
    exitcode = handle.worker.exitcode
    if handle.worker.ended_how:
        return handle.worker.ended_how
    if exitcode is None or exitcode >= 0:
        return how_ended(exitcode or 0)
    if handle.oom:
        return handle.oom.ending(-exitcode)
    return f"{how_ended(exitcode)} on {handle.order.node}"

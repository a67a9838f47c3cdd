"""The machine's record of its workers, one per lane: limits on silence, starts in waves, and the workers' states."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import msgspec

from esper_ab.contracts.messages import Failed, RunSpec, WorkerOrder
from esper_ab.contracts.wording import visible_line

_SUMMARY_CHARS = 1000  # of an error that a worker reports
_STEPS_WAITED = 10  # an estimate may be off by a factor of 2 or 3, and seed modules and neighbours slow a step down


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Time limits on silence and waiting, seconds, and how often a worker may die."""

    floor_s: float = 60.0
    start_up_s: float = 300.0  # cold disks, compilation, first allocation
    factor: float = 5.0
    pause_s: float = 10.0  # a longer gap means that the coordinator itself was suspended, so no worker is blamed
    disk_full_s: float = 600.0  # wait for disk space before the experiment ends with DiskFull
    ping_s: float = math.inf  # an idle worker that has been silent this long is pinged ...
    pong_s: float = 40.0  # ... and must answer within this time
    # The scheduler that stops the coordinator also kills its workers, so a stop does not wait for them.
    ended_together: bool = False
    say_s: float = 10.0  # a stop that takes longer names the workers that it waits for
    # Deaths at one milestone after which a run's replicate is given up; after earlier ones, its worker is restarted.
    deaths: int = 3

    def across_nodes(self) -> Limits:
        """Return limits for workers on nodes that a scheduler allocates: the loss of a node is noticed within a minute.
        """
        return msgspec.structs.replace(self, ping_s=20.0, ended_together=True)

    def of_steps(self, step_s: float) -> Limits:
        """Return limits for runs whose only signs of life are steps of about `step_s` seconds."""
        return msgspec.structs.replace(self, start_up_s=max(self.start_up_s, _STEPS_WAITED * step_s))


# --- liveness --------------------------------------------------------------------------------------------------------
# Late workers: those that owe a sign of life and have not given it in time. `now` (monotonic, s) is an argument.
#
# A sign of life is progress reported by the training loop, not a heartbeat: a worker stuck in Python still answers
# pings. The limit is five times the median time that followed a sign of the same phase, over all workers, and at least
# a minute. A phase that no worker has completed yet gets the start-up grace instead. So does everything that is done
# once (start-up, loading data, warm-up), because a neighbour's warm caches say nothing about a cold one. The grace
# grows with the plan's expected time per step, because a step of a large task can take minutes. It also grows with the
# number of runnable processes per core, because on a crowded machine everything takes that many times longer. A worker
# that waits at a barrier owes nothing. But if the loss of its node would otherwise go unnoticed, it is pinged from time
# to time, and owes an answer.


START_UP, ASSIGNED, WARM_UP, PING = "start-up", "assigned", "warm-up", "ping"
_DONE_ONCE = (START_UP, ASSIGNED, WARM_UP)
_INTERVALS_KEPT = 64  # per phase: few enough that the median follows a change of pace within an episode or two


class Sign(msgspec.Struct, frozen=True, kw_only=True):
    """The activity that a worker last reported."""

    phase: str
    run_name: str = ""  # "" before its first run
    step: int = 0


class Laggard(msgspec.Struct, frozen=True, kw_only=True):
    """A silent worker, the time that it has been silent, and its limit."""

    worker: str
    last: Sign
    silent_s: float
    limit_s: float


class Liveness:
    """Tracks signs of life of all workers, by identity."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._checked = now
        self._crowding = 1.0
        self._owing: dict[str, tuple[Sign, float]] = {}  # worker -> last sign and when
        self._resting: dict[str, float] = {}  # worker -> when it was last heard of
        self._intervals: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_INTERVALS_KEPT))

    def sign(self, worker: str, sign: Sign, now: float) -> None:
        """Record that the worker reported `sign` and now owes the next one."""
        self._note_interval(worker, now)
        self._resting.pop(worker, None)
        self._owing[worker] = (sign, now)

    def rest(self, worker: str, now: float) -> None:
        """Record that the worker has finished its task and owes no sign."""
        self._note_interval(worker, now)
        self._owing.pop(worker, None)
        self._resting[worker] = now

    def forget(self, worker: str) -> None:
        """Drop a worker that died during a task, without counting the interval."""
        self._owing.pop(worker, None)
        self._resting.pop(worker, None)

    def ping(self, now: float) -> tuple[str, ...]:
        """Return the idle workers that must be pinged now; each owes an answer."""
        due = tuple(worker for worker, at in self._resting.items() if now - at >= self._limits.ping_s)
        for worker in due:
            self.sign(worker, Sign(phase=PING), now)
        return due

    def pong(self, worker: str, now: float) -> None:
        """Record an answer to a ping; ignore it if the worker was given work after the ping."""
        if worker in self._owing and self._owing[worker][0].phase == PING:
            self.rest(worker, now)

    def last(self, worker: str) -> Sign | None:
        """Return the worker's last reported activity; None while it is idle."""
        sign = self._owing[worker][0] if worker in self._owing else None
        return None if sign is None or sign.phase == PING else sign

    def is_just_assigned(self, worker: str) -> bool:
        """True if the worker has sent nothing since it was given a run."""
        return worker in self._owing and self._owing[worker][0].phase == ASSIGNED

    def silence(self, worker: str, now: float) -> Laggard | None:
        """Return how long the worker has been silent; None while it owes no sign."""
        if worker not in self._owing:
            return None
        sign, at = self._owing[worker]
        return Laggard(worker=worker, last=sign, silent_s=now - at, limit_s=self._limit_s(sign.phase))

    def late(self, now: float, crowding: float = 1.0) -> tuple[Laggard, ...]:
        """Return the workers that are silent beyond their limit. Call it about once a second.

        A long gap between calls means that the coordinator itself stood still, and is not counted as silence.
        `crowding`: the factor by which load may slow a process down now, at least 1.
        """
        self._crowding = crowding
        gap, self._checked = now - self._checked, now
        if gap > self._limits.pause_s:
            self._owing = {worker: (sign, at + gap) for worker, (sign, at) in self._owing.items()}
        limits = {phase: self._limit_s(phase) for phase in {sign.phase for sign, _ in self._owing.values()}}
        silences = [(worker, sign, now - at, limits[sign.phase]) for worker, (sign, at) in self._owing.items()]
        return tuple(
            Laggard(worker=worker, last=sign, silent_s=silent_s, limit_s=limit_s)
            for worker, sign, silent_s, limit_s in silences
            if silent_s > limit_s
        )

    def _note_interval(self, worker: str, now: float) -> None:
        if worker in self._owing and self._owing[worker][0].phase != PING:
            sign, at = self._owing[worker]
            self._intervals[sign.phase].append(now - at)

    def _limit_s(self, phase: str) -> float:
        if phase == PING:
            return self._limits.pong_s
        if phase in _DONE_ONCE or phase not in self._intervals:
            return self._limits.start_up_s * self._crowding
        return max(self._limits.floor_s, self._limits.factor * statistics.median(self._intervals[phase]))


# --- waves -----------------------------------------------------------------------------------------------------------
# Start workers in waves: only a limited number are starting at a time, and the others wait for their turn.
#
# A starting worker loads libraries and shakes hands within a time limit, and ten thousand at once would slow each other
# down beyond it. A worker counts as starting from its turn until it has said Hello, is told to end, or could not be
# started.


AT_ONCE = 256


class Waves:
    """Lanes whose workers wait for their turn to start, first come first served, and lanes whose workers are starting.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._waiting: dict[str, None] = {}  # in order
        self._starting: set[str] = set()

    def ask(self, lane: str) -> None:
        """Queue the start of the lane's worker, replacing an earlier start."""
        self._starting.discard(lane)
        self._waiting[lane] = None

    def over(self, lane: str) -> None:
        """Note that the lane's worker is no longer starting."""
        self._starting.discard(lane)

    def turns(self) -> tuple[str, ...]:
        """Return the lanes whose turn it is, and count their workers as starting."""
        turns = tuple(islice(self._waiting, max(0, self._at_once - len(self._starting))))
        for lane in turns:
            del self._waiting[lane]
        self._starting.update(turns)
        return turns


# --- worker state ----------------------------------------------------------------------------------------------------
# The state of the workers, one per lane, from their start to their end.


@dataclass(kw_only=True)
class WorkerState:
    """The current incarnation of one lane's worker, and the run that it or its successor works on."""

    order: WorkerOrder
    tried: bool = False  # whether a start was attempted
    again: bool = False  # whether an earlier start on its lane was attempted, so that this one is recorded as a restart
    greeted: bool = False  # has said Hello
    run: RunSpec | None = None  # assigned and not done; if this worker ends, the next incarnation continues it
    exited_at: float | None = None  # s, monotonic: when the worker was seen to have ended by itself
    fault: str = ""  # why it must be ended; its further messages are ignored
    ending: bool = False  # told to end, but not gone yet; its further messages are ignored
    hopeless: bool = False  # whether a restart would fail in the same way
    stops: bool = False  # whether the experiment must stop until the user has mended something
    told: bool = False  # whether `fault` says all that concerns the user, so that the log need not be shown
    cause: str = ""  # why the user's program failed, equal for equal failures; "": another reason
    traceback: str = ""  # as the worker reported it, in case it leaves no log

    def failed(self, message: Failed) -> None:
        """Note the worker's own report that it cannot continue."""
        self.fault = f"reported an error: {visible_line(message.summary, _SUMMARY_CHARS)}"
        self.traceback, self.cause = message.traceback, message.cause
        self.hopeless, self.stops = not message.again, message.stops
        self.told = not message.traceback

    @property
    def identity(self) -> str:
        return self.order.identity

    @property
    def lane(self) -> str:
        return self.order.lane.name

    @property
    def is_free(self) -> bool:
        """True if the worker can be given a run."""
        return self.greeted and self.run is None and not self.ending

    @property
    def title(self) -> str:
        return f"worker {self.identity} on {self.lane}"


class Workers:
    """The current worker of every lane."""

    def __init__(self) -> None:
        self._by_lane: dict[str, WorkerState] = {}
        self._by_identity: dict[str, WorkerState] = {}

    def __iter__(self) -> Iterator[WorkerState]:
        return iter(self._by_lane.values())

    def on_lane(self, lane: str) -> WorkerState:
        return self._by_lane[lane]

    def of(self, identity: str) -> WorkerState | None:
        """Return the worker with this identity; None for an earlier incarnation and for a stranger."""
        return self._by_identity.get(identity)

    def ordered(self, order: WorkerOrder, *, tried: bool) -> WorkerState:
        """Create the state of a worker from its order. `tried`: its start was attempted; else it waits for its turn.

        The next incarnation inherits the run of the previous one and nothing else.
        """
        before = self._by_lane.get(order.lane.name)
        worker = WorkerState(order=order, tried=tried)
        if before is not None:
            del self._by_identity[before.identity]
            worker.run, worker.again = before.run, before.again or before.tried
        self._by_lane[worker.lane] = self._by_identity[worker.identity] = worker
        return worker

"""Late workers: those that owe a sign of life and have not given it in time. `now` (monotonic, s) is an argument.

A sign of life is progress reported by the training loop, not a heartbeat: a worker stuck in Python still answers
pings. The limit is five times the median time that followed a sign of the same phase, over all workers, and at least
a minute. A phase that no worker has completed yet gets the start-up grace instead. So does everything that is done
once (start-up, loading data, warm-up), because a neighbour's warm caches say nothing about a cold one. The grace
grows with the plan's expected time per step, because a step of a large task can take minutes. It also grows with the
number of runnable processes per core, because on a crowded machine everything takes that many times longer. A worker
that waits at a barrier owes nothing. But if the loss of its node would otherwise go unnoticed, it is pinged from time
to time, and owes an answer.
"""

from __future__ import annotations

import statistics
from collections import defaultdict, deque

import msgspec

from esper_ab.control.rules.limits import Limits

START_UP = "start-up"
ASSIGNED = "assigned"
WARM_UP = "warm-up"
PING = "ping"
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

    def __init__(self, limits: Limits, now_s: float) -> None:
        self._limits = limits
        self._checked = now_s
        self._crowding = 1.0
        self._owing: dict[str, tuple[Sign, float]] = {}  # worker -> last sign and when
        self._resting: dict[str, float] = {}  # worker -> when it was last heard of
        self._intervals: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_INTERVALS_KEPT))

    def sign(self, worker: str, sign: Sign, now_s: float) -> None:
        """Record that the worker reported `sign` and now owes the next one."""
        self._note_interval(worker, now_s)
        self._resting.pop(worker, None)
        self._owing[worker] = (sign, now_s)

    def rest(self, worker: str, now_s: float) -> None:
        """Record that the worker has finished its task and owes no sign."""
        self._note_interval(worker, now_s)
        self._owing.pop(worker, None)
        self._resting[worker] = now_s

    def forget(self, worker: str) -> None:
        """Drop a worker that died during a task, without counting the interval."""
        self._owing.pop(worker, None)
        self._resting.pop(worker, None)

    def ping(self, now_s: float) -> tuple[str, ...]:
        """Return the idle workers that must be pinged now; each owes an answer."""
        due_workers = tuple(worker for worker, rest_s in self._resting.items() if now_s - rest_s >= self._limits.ping_s)
        for worker in due_workers:
            self.sign(worker, Sign(phase=PING), now_s)
        return due_workers

    def pong(self, worker: str, now_s: float) -> None:
        """Record an answer to a ping; ignore it if the worker was given work after the ping."""
        if worker in self._owing and self._owing[worker][0].phase == PING:
            self.rest(worker, now_s)

    def last(self, worker: str) -> Sign | None:
        """Return the worker's last reported activity; None while it is idle."""
        sign = self._owing[worker][0] if worker in self._owing else None
        return None if sign is None or sign.phase == PING else sign

    def is_just_assigned(self, worker: str) -> bool:
        """True if the worker has sent nothing since it was given a run."""
        return worker in self._owing and self._owing[worker][0].phase == ASSIGNED

    def silence(self, worker: str, now_s: float) -> Laggard | None:
        """Return how long the worker has been silent; None while it owes no sign."""
        if worker not in self._owing:
            return None
        sign, sign_s = self._owing[worker]
        return Laggard(worker=worker, last=sign, silent_s=now_s - sign_s, limit_s=self._limit_s(sign.phase))

    def late(self, now_s: float, crowding: float = 1.0) -> tuple[Laggard, ...]:
        """Return the workers that are silent beyond their limit. Call it about once a second.

        A long gap between calls means that the coordinator itself stood still, and is not counted as silence.
        `crowding`: the factor by which load may slow a process down now, at least 1.
        """
        self._crowding = crowding
        gap = now_s - self._checked
        self._checked = now_s
        if gap > self._limits.pause_s:
            self._owing = {worker: (sign, sign_s + gap) for worker, (sign, sign_s) in self._owing.items()}
        limits = {phase: self._limit_s(phase) for phase in {sign.phase for sign, _ in self._owing.values()}}
        silences = [
            (worker, sign, now_s - sign_s, limits[sign.phase]) for worker, (sign, sign_s) in self._owing.items()
        ]
        return tuple(
            Laggard(worker=worker, last=sign, silent_s=silent_s, limit_s=limit_s)
            for worker, sign, silent_s, limit_s in silences
            if silent_s > limit_s
        )

    def _note_interval(self, worker: str, now_s: float) -> None:
        if worker in self._owing and self._owing[worker][0].phase != PING:
            sign, sign_s = self._owing[worker]
            self._intervals[sign.phase].append(now_s - sign_s)

    def _limit_s(self, phase: str) -> float:
        if phase == PING:
            return self._limits.pong_s
        if phase in _DONE_ONCE or phase not in self._intervals:
            return self._limits.start_up_s * self._crowding
        return max(self._limits.floor_s, self._limits.factor * statistics.median(self._intervals[phase]))

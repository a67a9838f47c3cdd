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

from collections.abc import Iterator
from dataclasses import dataclass

from esper_ab.contracts.messages import Failed
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.worker_order import RunSpec, WorkerOrder

_SUMMARY_CHARS = 1000  # of an error that a worker reports


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
        self.traceback = message.traceback
        self.cause = message.cause
        self.hopeless = not message.again
        self.stops = message.stops
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
            worker.run = before.run
            worker.again = before.again or before.tried
        self._by_lane[worker.lane] = self._by_identity[worker.identity] = worker
        return worker

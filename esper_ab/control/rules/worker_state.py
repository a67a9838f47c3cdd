"""The current worker of every lane: what it has said, which run it works on and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from msgspec import structs

from esper_ab.contracts.failure_cause import UNKNOWN, Cause
from esper_ab.contracts.messages import Failed
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.worker_order import RunSpec, WorkerOrder

_SUMMARY_CHARS = 1000  # of an error that a worker reports


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Why a worker must be ended."""

    text: str
    says_all: bool = False  # whether `text` says all that concerns the user, so that the log need not be shown
    traceback: str = ""  # as the worker reported it, in case it leaves no log
    cause: Cause = UNKNOWN  # why the user's program failed; UNKNOWN: another reason
    retryable: bool = True  # whether a restart may help
    stops_experiment: bool = False  # whether the experiment must stop until the user has mended something


@dataclass(kw_only=True)
class WorkerState:
    """The current incarnation of one lane's worker, and the run that it or its successor works on."""

    order: WorkerOrder
    tried: bool = False  # whether a start was attempted
    again: bool = False  # whether an earlier start on its lane was attempted, so that this one is recorded as a restart
    greeted: bool = False  # has said Hello
    run: RunSpec | None = None  # assigned and not done; if this worker ends, the next incarnation continues it
    cancelled: bool = False  # whether it was told to leave a run; its word that this run failed may be on its way
    exited_at: float | None = None  # s, monotonic: when the worker was seen to have ended by itself
    fault: Fault | None = None  # once there is one, its further messages are ignored
    ending: bool = False  # told to end, but not gone yet; its further messages are ignored

    def failed(self, message: Failed) -> None:
        """Note the worker's own report that it cannot continue."""
        self.fault = Fault(
            text=f"reported an error: {visible_line(message.summary, _SUMMARY_CHARS)}",
            says_all=not message.traceback,
            traceback=message.traceback,
            cause=structs.replace(message.cause, text=visible_line(message.cause.text)),
            retryable=message.again,
            stops_experiment=message.stops,
        )

    def reject(self, reason: str) -> None:
        """Note that the worker's messages cannot be right. The fault that it reported before is kept."""
        self.fault = replace(self.fault or Fault(text=""), text=reason)

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
        previous_worker = self._by_lane.get(order.lane.name)
        worker = WorkerState(order=order, tried=tried)
        if previous_worker is not None:
            del self._by_identity[previous_worker.identity]
            worker.run = previous_worker.run
            worker.again = previous_worker.again or previous_worker.tried
        self._by_lane[worker.lane] = self._by_identity[worker.identity] = worker
        return worker

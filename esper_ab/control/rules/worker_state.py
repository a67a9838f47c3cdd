"""What is known of the workers, one per lane, from their start to their end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from esper_ab.contracts.messages import RunSpec, WorkerOrder


@dataclass(kw_only=True)
class WorkerState:
    """The present incarnation of one lane's worker, and the run that it or its successor works on."""

    order: WorkerOrder
    tried: bool = False  # its start
    again: bool = False  # a start on its lane was tried before, so that its own is worth an entry
    greeted: bool = False  # has said Hello
    run: RunSpec | None = None  # assigned and not done; the next incarnation takes it up
    exited_at: float | None = None  # s, monotonic: when the worker was seen to have ended by itself
    fault: str = ""  # why it is to be ended; nothing that it says counts any more
    ending: bool = False  # it was told to end and is not gone yet; nothing that it says counts any more
    hopeless: bool = False  # another start would fare no better
    told: bool = False  # by its fault, which is all that concerns the user: nobody need show its log
    traceback: str = ""  # as it reported it, in case it leaves no log

    @property
    def identity(self) -> str:
        return self.order.identity

    @property
    def lane(self) -> str:
        return self.order.lane.name

    @property
    def is_free(self) -> bool:
        """Whether it can be given a run."""
        return self.greeted and self.run is None and not self.ending

    @property
    def title(self) -> str:
        return f"worker {self.identity} on {self.lane}"


class Workers:
    """The present worker of every lane."""

    def __init__(self) -> None:
        self._by_lane: dict[str, WorkerState] = {}
        self._by_identity: dict[str, WorkerState] = {}

    def __iter__(self) -> Iterator[WorkerState]:
        return iter(self._by_lane.values())

    def on_lane(self, lane: str) -> WorkerState:
        return self._by_lane[lane]

    def of(self, identity: str) -> WorkerState | None:
        """Return the worker of that name; None for an earlier incarnation and for a stranger."""
        return self._by_identity.get(identity)

    def ordered(self, order: WorkerOrder, *, tried: bool) -> WorkerState:
        """Return the worker of an order, whose start was `tried` or waits for its turn.

        The next incarnation takes over the run; of the earlier one nothing else counts any more.
        """
        before = self._by_lane.get(order.lane.name)
        worker = WorkerState(order=order, tried=tried)
        if before is not None:
            del self._by_identity[before.identity]
            worker.run, worker.again = before.run, before.again or before.tried
        self._by_lane[worker.lane] = self._by_identity[worker.identity] = worker
        return worker

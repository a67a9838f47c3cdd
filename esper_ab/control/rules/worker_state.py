"""What is known of the worker of one lane, from its start to its end."""

from __future__ import annotations

from dataclasses import dataclass

from esper_ab.contracts.messages import RunSpec, WorkerOrder


@dataclass(kw_only=True)
class WorkerState:
    """The present incarnation of one lane's worker, and the run that it or its successor works on."""

    order: WorkerOrder
    greeted: bool = False  # has said Hello
    run: RunSpec | None = None  # assigned and not done; the next incarnation takes it up
    exited_at: float | None = None  # s, monotonic: when the worker was seen to have ended by itself
    fault: str = ""  # why it is to be ended; nothing that it says counts any more
    traceback: str = ""  # as it reported it, in case it leaves no log

    @property
    def identity(self) -> str:
        return self.order.identity

    @property
    def lane(self) -> str:
        return self.order.lane.name

    @property
    def title(self) -> str:
        return f"worker {self.identity} on {self.lane}"

    def launched(self, order: WorkerOrder) -> None:
        """Begin the next incarnation; the run stays."""
        self.order = order
        self.greeted, self.exited_at, self.fault, self.traceback = False, None, "", ""

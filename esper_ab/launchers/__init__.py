"""Launchers start workers, one file each; they place workers and report their end, independent of the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.messages import Lane, WorkerOrder
from esper_ab.launchers import descriptors

# Connection of workers to the coordinator. ipc: a socket that only this user of this machine can open; tcp: CURVE,
# with keys for these workers only. No result depends on it.
Transport = Literal["ipc", "tcp"]


class Worker(Protocol):
    """Handle of one started worker."""

    @property
    def name(self) -> str:
        """Identity of the worker: "w00/1"."""

    @property
    def pid(self) -> int:
        """Process that runs the worker; this one's for a thread."""

    @property
    def sentinel(self) -> int:
        """File descriptor that becomes readable, and stays so, once the worker has ended."""

    @property
    def exitcode(self) -> int | None:
        """Exit code: None while running, 0 after success, minus a signal's number when a signal ended it."""

    def dump_stacks(self) -> None:
        """Write the stacks of all its threads to its log; returns at once, the log follows shortly."""

    def kill(self) -> None:
        """End the worker now, whatever it is doing; a thread cannot be ended and is abandoned."""

    def join(self, timeout_s: float) -> bool:
        """Wait for its end and free its resources; False when it has not ended in time."""


class Launcher(Protocol):
    """Starts workers by calling a named entry point, "module:function", with the order."""

    @property
    def transport(self) -> Transport:
        """Transport that its workers need."""

    @property
    def for_gpus(self) -> bool:
        """Whether its workers can have GPUs: torch fixes their choice and arithmetic once per process."""

    @property
    def descriptors(self) -> int:
        """File descriptors of this process that one of its workers takes, with that of its connection."""

    def start(self, order: WorkerOrder) -> Worker:
        """Return at once, with OSError when it cannot be started now.

        Whether the worker gets anywhere shows in its Hello or its end.
        """


def check(launcher: Launcher, lanes: Sequence[Lane]) -> None:
    """UsageError unless this launcher can start one worker per lane and each can have the devices of its lane."""
    gpus = [lane.name for lane in lanes if any(lane.uuids)]
    if gpus and not launcher.for_gpus:
        raise UsageError(
            f"launcher inline on {gpus[0]}: threads share one view of the GPUs, so none would have its own; take "
            "launcher local, or CPU devices"
        )
    descriptors.check(len(lanes), launcher.descriptors)

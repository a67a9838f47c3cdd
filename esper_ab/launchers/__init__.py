"""A catalogue of launchers, one file each: they start workers, place them and report their end.

A file NAME.py provides `LAUNCHER`, a `LauncherFactory`; `--launcher NAME` finds it by its name and imports no other.
A launcher knows nothing of the protocol, and the control plane never imports a worker: entry points are names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from multiprocessing import parent_process
from typing import Any, Literal, Protocol

from esper_ab.contracts.messages import Lane, WorkerOrder
from esper_ab.contracts.own_packages import add_working_directory, end_with_parent, import_own

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
    """Starts workers; each calls the entry point with its order."""

    @property
    def transport(self) -> Transport:
        """Transport that its workers need."""

    @property
    def child_processes(self) -> bool:
        """Whether every worker is a child process of this one, which a signal can stop or end."""

    @property
    def descriptors(self) -> int:
        """File descriptors of this process that one of its workers takes, with that of its connection."""

    def check_lanes(self, lanes: Sequence[Lane]) -> None:
        """UsageError, naming this launcher, unless each lane's worker can have the devices of its lane."""

    def start(self, order: WorkerOrder) -> Worker:
        """Return at once; OSError when it cannot be started now. What becomes of it shows in its Hello or its end."""


class LauncherFactory(Protocol):
    """Type of `LAUNCHER`: makes a launcher; the default of `entry` is the entry point that suits its workers."""

    def __call__(self, entry: str = ..., transport: Transport = ...) -> Launcher:
        """`entry`: "module:function", called with the WorkerOrder. UsageError when it cannot start workers here."""


def call(entry: str, order: WorkerOrder) -> None:
    """Import and call "module:function" with `order`, in the worker's own process or thread."""
    module, _, function = entry.partition(":")
    main: Callable[[WorkerOrder], Any] = getattr(import_own(module), function)
    main(order)


def call_in_process(entry: str, order: WorkerOrder) -> None:
    """Do as `call`, in a process of its own, which finds users' modules where the preflight found them.

    It ends with its parent from here on, before anything is imported that takes time.
    """
    parent = parent_process()
    if parent is not None and parent.pid is not None:
        end_with_parent(parent.pid)
    add_working_directory()
    call(entry, order)

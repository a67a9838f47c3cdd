"""The commands of the experiment machine, which the coordinator performs in the order in which it gets them."""

from __future__ import annotations

import msgspec

from esper_ab.contracts.errors import EsperError
from esper_ab.contracts.messages import CoordinatorMessage, Progress
from esper_ab.journal.events import AnyEvent


class Append(msgspec.Struct, frozen=True):
    """Append an event to the journal; the machine's history already has it."""

    event: AnyEvent


class Sync(msgspec.Struct, frozen=True):
    """Wait until every event recorded so far is on disk. No worker is released before that."""


class Flush(msgspec.Struct, frozen=True):
    """Pass the events recorded so far to readers and observers, without waiting for the disk."""


class Send(msgspec.Struct, frozen=True):
    """Send a message to a worker. The worker may be gone; its exit is reported separately."""

    identity: str
    message: CoordinatorMessage


class Show(msgspec.Struct, frozen=True):
    """Pass a sign of life to the observers; it is not journalled."""

    progress: Progress


class Warn(msgspec.Struct, frozen=True):
    """Show the observers a warning at once; it is not journalled."""

    text: str


class DumpStacks(msgspec.Struct, frozen=True):
    """Make the worker of a lane write the stacks of its threads to its log."""

    lane: str


class EndWorker(msgspec.Struct, frozen=True):
    """End the worker of a lane; once it is gone, report it as `lost` with the end of its log."""

    lane: str
    reason: str  # "": it ended by itself, and its exit status says how
    hung: bool
    run_log: str  # log of the run that it works on, relative to the experiment directory; "" without a run


class RestartWorker(msgspec.Struct, frozen=True):
    """Start the next incarnation of a lane's worker and report it as `launched`."""

    lane: str


class Fail(msgspec.Struct, frozen=True):
    """Raise `error`: the experiment is over, and later commands are ignored."""

    error: EsperError


Command = Append | Sync | Flush | Send | Show | Warn | DumpStacks | EndWorker | RestartWorker | Fail

"""The commands that one call of the experiment machine returns, in order. Events enter the history at once."""

from __future__ import annotations

from collections.abc import Iterable

from esper_ab.contracts.messages import CoordinatorMessage
from esper_ab.control.rules.commands import Append, Command, Send
from esper_ab.control.rules.worker_state import WorkerState
from esper_ab.journal.events import AnyEvent
from esper_ab.journal.fold import History


class Outbox:
    """Collects the commands of one call, in order; `taken` empties it."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._commands: list[Command] = []

    def do(self, command: Command) -> None:
        self._commands.append(command)

    def record(self, event: AnyEvent) -> None:
        """Add an event to the history and queue it for the journal."""
        self._history.add(event)
        self.do(Append(event))

    def record_all(self, events: Iterable[AnyEvent]) -> None:
        """`record` each of the events."""
        for event in events:
            self.record(event)

    def send(self, worker: WorkerState, message: CoordinatorMessage) -> None:
        self.do(Send(worker.identity, message))

    def taken(self) -> tuple[Command, ...]:
        """Return all queued commands and empty the outbox."""
        taken_commands = tuple(self._commands)
        self._commands = []
        return taken_commands

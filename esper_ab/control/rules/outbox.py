"""What a call of the experiment machine asks for, in order; the history has at once what is to be recorded."""

from __future__ import annotations

from esper_ab.contracts.messages import CoordinatorMessage
from esper_ab.control.rules import commands
from esper_ab.control.rules.commands import Command
from esper_ab.control.rules.worker_state import WorkerState
from esper_ab.journal.events import AnyEvent
from esper_ab.journal.fold import History


class Outbox:
    """Filled during one call and taken at its end."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._commands: list[Command] = []

    def do(self, command: Command) -> None:
        self._commands.append(command)

    def record(self, event: AnyEvent) -> None:
        """Add an event to the history and have it journalled."""
        self._history.add(event)
        self.do(commands.Append(event))

    def send(self, worker: WorkerState, message: CoordinatorMessage) -> None:
        self.do(commands.Send(worker.identity, message))

    def taken(self) -> tuple[Command, ...]:
        """All of it; it is empty afterwards."""
        taken, self._commands = tuple(self._commands), []
        return taken

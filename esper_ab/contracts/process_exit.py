"""How this process may exit: code that runs users' code in it makes a note here, and commands/_exit_status reads it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass
class ProcessExit:
    """What decides whether Python tears down its libraries when this process exits."""

    needs_teardown: bool = False  # users' code has run in this process, and may hold open files
    abandoned: list[threading.Thread] = field(default_factory=list)

    def teardown_could_crash(self) -> bool:
        """True if an abandoned thread still runs; it may be inside a library, which could then abort the process."""
        return any(thread.is_alive() for thread in self.abandoned)


PROCESS_EXIT = ProcessExit()

"""One line per look of a running gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from esper_ab.control.observers import Observed
from esper_ab.journal.events import LookTaken


@dataclass(frozen=True, kw_only=True)
class LookLines:
    """An observer that passes one line per look to `say`."""

    say: Callable[[str], object]
    most_pairs: int
    minutes: float
    spent_s: Callable[[], float]  # since the gate began, without pauses

    def observe(self, event: Observed) -> None:
        """Pass on the line of an event that is a look."""
        if not isinstance(event, LookTaken):
            return
        outcome = event.outcome if event.decided or event.leaving else "not decided yet"
        minutes = f"{self.spent_s() / 60.0:.1f} of {self.minutes:g} min"
        self.say(f"look after {event.replicates} of at most {self.most_pairs} pairs, {minutes}: {outcome}")

"""The unit of a task's outcome, which direction is better, and how large a difference matters. Types only."""

from __future__ import annotations

import msgspec

from esper_ab.contracts.measures import Margin, Measure, TaskMeasures
from esper_ab.contracts.settings import Settings

MEAN = "mean over tasks"
msgspec.json.Decoder(Measure)  # built now, in one thread: tests/house/test_decoders.py


class Scale(Settings, frozen=True, kw_only=True):
    """How the outcomes of one task are measured."""

    task: str  # "": there are no tasks
    outcome: Measure
    margin: Margin  # in the unit of a difference
    worst: float | None = None  # outcome that stands for a lost run; None: none is declared

    @property
    def best(self) -> float | None:
        """The best possible outcome; None if none is declared."""
        return self.outcome.best_possible

    @property
    def measures(self) -> TaskMeasures:
        """The measures as a design contains them."""
        return TaskMeasures(outcome=self.outcome, margin=self.margin)


# Outcomes divided by their task's margin, higher always better, so that a margin of every task counts alike.
OF_MEAN = Scale(
    task=MEAN,
    margin=1.0,
    outcome=Measure(name="mean_over_tasks", label=MEAN, unit="margins", better="higher"),
)

"""A note on the plans of bandits."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.plan.kind import NotesKind
from esper_ab.settings.experiment import ResolvedExperiment


class BanditNotes(NotesKind):
    """One note on learning."""

    def on_learning(self, experiment: ResolvedExperiment) -> Iterator[str]:
        """Yield a note if an episode is too short to try every arm."""
        arms = int(experiment.task.removeprefix("bandit:"))
        if experiment.steps < arms:
            yield f"An episode of {experiment.steps} steps cannot try all {arms} arms."


KIND = BanditNotes()

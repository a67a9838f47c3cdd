"""Tables for a user's own trainer, which has points and outcomes but no episodes or decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from esper_ab.contracts.wording import counted
from esper_ab.report.kind import TablesKind
from esper_ab.settings.experiment import ResolvedExperiment


class TrainerTables(TablesKind):
    """Common rows in the words of a trainer."""

    evaluated = "what the trainer reports about its last state"
    episode = "point"
    curve = "What the trainer reports at each point."
    not_the_outcome = "training still goes on"
    changes = ""
    words: ClassVar[Mapping[str, str]] = {
        "training episodes": "points",
        "environment steps in training": "",
        "evaluation episodes": "outcomes evaluated",
        "s / episode, median": "s / point, median",
        "decisions / s of one run": "",
        "warm-up s, median": "",
        "first episode / others": "first point / others",
        "environments failed": "outcomes that were not a number",
        "environments failed %": "outcomes that were not a number, %",
    }

    def conditions(self, experiment: ResolvedExperiment) -> dict[str, str]:
        """Describe the trainer, and how often it reports."""
        return {
            "trainer": experiment.trainer,
            "points": str(experiment.episodes),
            "evaluation": f"{counted(experiment.eval_episodes, 'outcome')} per run",
        }


KIND = TrainerTables()

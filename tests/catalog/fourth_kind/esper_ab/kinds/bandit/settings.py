"""The settings of bandits: their groups and defaults, and what the name of a task says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.kind import SettingsKind


class BanditSettings(SettingsKind):
    """Bandits run on the CPU; a group learns from what it is paid, or pulls arms at random."""

    name = "bandit"
    words = "bandits"
    rewards = ("paid",)
    controllers = ("random",)
    default_groups = ("paid", "random")
    on_cores = True
    declares_margins = True
    also_reads = ("outcome_range",)
    defaults: ClassVar[Mapping[str, object]] = {
        "reward.mode": "paid",
        "ppo.lr": 1e-2,
        "policy.memory": "none",
        "n_envs": 8,
        "episodes": 12,
        "steps": 20,
    }

    def read(self, asked: AskedExperiment, said: Sequence[Assignment]) -> AskedExperiment:
        """Check the number of arms too."""
        arms = asked.task.removeprefix("bandit:")
        if not (arms.isdecimal() and int(arms) >= 2):
            raise UsageError(SettingName("task", asked.task), ": give the number of arms, at least 2, as in bandit:10")
        return super().read(asked, said)


KIND = BanditSettings()

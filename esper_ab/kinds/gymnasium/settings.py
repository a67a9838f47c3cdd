"""The kind of tasks that are Gymnasium environments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.kinds_of_task import ENV_REWARD
from esper_ab.contracts.machine import Questions, TaskFacts
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.experiment import AskedExperiment, Group
from esper_ab.settings.kind import SettingsKind
from esper_ab.settings.outcome_range import read_range, worst_outcome


class GymnasiumKind(SettingsKind):
    """Gymnasium environments. Policy and environments run on the CPU, and an environment decides when episodes end."""

    name = "gymnasium"
    words = "Gymnasium environments"
    rewards = (ENV_REWARD,)
    controllers = ("random",)
    no_groups = ": name the groups, as in env,mine=path/to/file.py:reward; 'env' trains on the environment's own reward"
    on_cores = True
    defaults: ClassVar[Mapping[str, object]] = {
        "reward.mode": ENV_REWARD,
        "n_envs": 8,
        "episodes": 50,
        "steps": 1000,
    }

    def read(self, asked_experiment: AskedExperiment, assignments: Sequence[Assignment]) -> AskedExperiment:
        """Apply the usual changes, and convert `total_timesteps` to a number of whole rollouts, rounded up."""
        super().read(asked_experiment, assignments)
        if asked_experiment.outcome == "return":
            asked_experiment = msgspec.structs.replace(asked_experiment, outcome="")
        if not asked_experiment.total_timesteps:
            return asked_experiment
        if any(assignment.key == "episodes" for assignment in assignments):
            raise UsageError(
                SettingName("total_timesteps"),
                " and ",
                SettingName("episodes"),
                " both set how long a run trains: choose one",
            )
        for group in asked_experiment.groups:
            if group.settings.gym.rollout == "episodes":
                raise UsageError(
                    SettingName("total_timesteps"),
                    f": the rollouts of group {group.name!r} end with their episodes, so "
                    "their steps are unknown; with ",
                    SettingName("gym.rollout", "continues", assigned=True),
                    " each has as many steps as ",
                    SettingName("steps"),
                    " says",
                )
        rollouts = -(-asked_experiment.total_timesteps // (asked_experiment.steps * asked_experiment.n_envs))
        return msgspec.structs.replace(asked_experiment, episodes=rollouts, total_timesteps=0)

    def ask(self, asked_experiment: AskedExperiment) -> Questions:
        """Return the usual questions, and ask about the outcome and the reward of every group."""
        low, high = read_range(asked_experiment.outcome_range)
        return msgspec.structs.replace(
            super().ask(asked_experiment),
            outcome=asked_experiment.outcome,
            outcome_better=asked_experiment.outcome_better or "higher",
            outcome_low=low,
            outcome_high=high,
            outcome_worst=worst_outcome(asked_experiment),
            rewards={group.name: group.settings.reward for group in asked_experiment.groups},
        )

    def check_task(self, asked_experiment: AskedExperiment, task: TaskFacts) -> None:
        """Raise UsageError if a group's rollouts have no outcome or no end, or its actions no standard deviation."""
        for group in asked_experiment.groups:
            _check_rollouts(group, asked_experiment, task)
            if group.settings.policy.log_std != 0.0 and not task.action_bounds:
                raise UsageError(
                    f"group {group.name!r}: policy.log_std={group.settings.policy.log_std:g} is where the standard "
                    f"deviation of continuous actions starts, but task {task.name} has discrete ones; omit it"
                )


def _check_rollouts(group: Group, experiment: AskedExperiment, task: TaskFacts) -> None:
    gym = group.settings.gym
    if gym.rollout == "episodes":
        return
    if experiment.outcome_over != "evaluation":
        raise UsageError(
            SettingName("outcome_over", experiment.outcome_over),
            f": group {group.name!r} has gym.rollout={gym.rollout}, and a rollout in which no episode ends has no "
            "outcome; use ",
            SettingName("outcome_over", "evaluation"),
            " or ",
            SettingName("gym.rollout", "episodes", assigned=True),
        )
    if not (gym.episode_steps or task.episode_steps):
        raise UsageError(
            f"group {group.name!r}: gym.rollout={gym.rollout}: neither the environment nor a rollout limits the length "
            "of an evaluation episode; set a limit, as in ",
            SettingName("gym.episode_steps", 1000, assigned=True),
        )


KIND = GymnasiumKind()

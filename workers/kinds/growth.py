"""Runs of the task of growing networks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from esper_ab.contracts import catalog, messages
from esper_ab.contracts.messages import RunSpec
from esper_ab.contracts.settings import PolicySettings, RewardSettings
from workers.arrays import Floats
from workers.datasets.task import Task
from workers.devices.by_torch import torch_devices
from workers.environments import Controller, Spaces, Stopwatch
from workers.facts import StepFacts
from workers.growth.environment import EnvSpec, GrowthEnv
from workers.growth.rules.observe import STD_FLOOR, layout
from workers.growth.samples import DeviceData
from workers.native import library
from workers.run.session import Session
from workers.user_rewards.lookup import Find, as_planned, find_reward
from workers.vocabulary import HEADS, Op, head_sizes


class GrowthWorld:
    """A run's task and its splits, `data`, for each of its devices.

    `find` returns the function of a reward mode; by default the installed one or that in its file today.
    """

    def __init__(self, spec: RunSpec, task: Task, data: dict[str, DeviceData], find: Find = find_reward) -> None:
        """Unusable when the kernel of `spec` cannot be had here."""
        library.check(spec.arithmetic)
        self._spec, self._task, self._data, self._find = spec, task, data, find
        slots, blueprints = len(spec.slots), len(spec.settings.growth.blueprints)
        self.spaces = Spaces(
            observation_width=layout(slots, blueprints).width, head_names=HEADS,
            head_sizes=head_sizes(slots, blueprints), observation_std_floor=STD_FLOOR,
            first_bias=_op_bias(spec.settings.policy),
        )

        self.evaluation_steps = spec.steps

    def environments(
        self, reward: RewardSettings, steps: int, n_envs: int, stopwatch: Stopwatch, *, whole: bool
    ) -> GrowthEnv:
        """Make the first `n_envs` hosts of the run for episodes of `steps` epochs, which are always whole."""
        spec = EnvSpec(
            task=self._task, slots=self._spec.slots, steps=steps, env_devices=self._spec.env_devices[:n_envs],
            growth=self._spec.settings.growth, reward=reward, kernel=self._spec.arithmetic.kernel,
        )
        return GrowthEnv(spec, self._data, stopwatch)

    def reward(self, settings: RewardSettings) -> Callable[[StepFacts], Floats]:
        """Return the function of a reward mode with its constants bound."""
        function = self._find(settings.mode)
        return lambda facts: function(facts, settings)


class GrowthRuns:
    """Makes the runs of one worker; each task's splits are uploaded once per device and kept between runs."""

    def __init__(self, lane: messages.Lane, experiment_dir: Path) -> None:
        self._devices = torch_devices(lane.devices)
        self._experiment_dir = experiment_dir
        self._shelf: dict[tuple[str, str], dict[str, DeviceData]] = {}

    def session(self, spec: RunSpec) -> Session:
        """Make a run; FileNotFoundError with the remedy when its data is missing."""
        task: Task = catalog.entry("workers.tasks", spec.task, "TASK")
        find = as_planned(spec.reward_code, self._experiment_dir)
        return Session(spec, GrowthWorld(spec, task, self._take(task, spec.data_dir), find))

    def _take(self, task: Task, data_dir: str) -> dict[str, DeviceData]:
        """Return the splits of `task` by plan name of the device."""
        key = (task.name, data_dir)
        if key not in self._shelf:
            splits = task.load(data_dir)
            uploaded = {device: DeviceData.of(splits, device) for device in set(self._devices.values())}
            self._shelf[key] = {name: uploaded[device] for name, device in self._devices.items()}
        return self._shelf[key]


RUNS = GrowthRuns


def controller(spec: RunSpec) -> Controller[Any]:
    """Make the controller that `spec` names, for its slots and blueprints."""
    make: Callable[..., Controller[Any]] = catalog.entry("workers.controllers", spec.settings.controller.name, "make")
    return make(spec.settings.controller, spec.slots, spec.settings.growth.blueprints)


def _op_bias(policy: PolicySettings) -> tuple[float, ...]:
    """Return where the logits of the op head start, in the order of `Op`."""
    bias = {
        Op.WAIT: policy.bias_wait, Op.GERMINATE: policy.bias_germinate,
        Op.SET_ALPHA_TARGET: policy.bias_set_alpha_target, Op.PRUNE: policy.bias_prune,
        Op.FOSSILIZE: policy.bias_fossilize, Op.ADVANCE: policy.bias_advance,
    }  # fmt: skip
    return tuple(bias[op] for op in Op)

"""The built-in task kind: growing networks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from esper_ab.contracts import catalog
from esper_ab.contracts.machine import Questions
from esper_ab.contracts.records import EnvEpisode
from esper_ab.contracts.settings import RewardSettings
from esper_ab.contracts.worker_order import Lane, RunSpec
from workers.arrays import Floats
from workers.devices.by_torch import device_here, torch_devices
from workers.environments import AboutTask, Controller, Kind, Spaces, Stopwatch, World
from workers.kinds.growth import preflight
from workers.kinds.growth.catalogues import TASKS, controller_maker, task_named
from workers.kinds.growth.datasets.task import Task
from workers.kinds.growth.environment import EnvSpec, GrowthEnv
from workers.kinds.growth.facts import StepFacts
from workers.kinds.growth.reward_lookup import find_reward
from workers.kinds.growth.rules.observe import STD_FLOOR, observation_width
from workers.kinds.growth.samples import DeviceData
from workers.kinds.growth.vocabulary import HEADS, Op, head_sizes
from workers.native import library
from workers.run.session import Session
from workers.user_code.loading import Load, as_it_is, as_planned


class GrowthWorld:
    """A run's task, with the task's splits per device in `data`; `loader` loads the user's rewards."""

    def __init__(self, spec: RunSpec, task: Task, data: dict[str, DeviceData], loader: Load = as_it_is) -> None:
        """Create the world; Unusable if the kernel that `spec` asks for is not available here."""
        library.check(spec.arithmetic)
        self._spec = spec
        self._task = task
        self._data = data
        self._load = loader
        slots = len(spec.slots)
        blueprints = len(spec.settings.growth.blueprints)
        policy = spec.settings.policy
        bias = {
            Op.WAIT: policy.bias_wait,
            Op.GERMINATE: policy.bias_germinate,
            Op.SET_ALPHA_TARGET: policy.bias_set_alpha_target,
            Op.PRUNE: policy.bias_prune,
            Op.FOSSILIZE: policy.bias_fossilize,
            Op.ADVANCE: policy.bias_advance,
        }
        self.spaces = Spaces(
            observation_width=observation_width(slots, blueprints),
            head_names=HEADS,
            head_sizes=head_sizes(slots, blueprints),
            observation_std_floor=STD_FLOOR,
            first_bias=tuple(bias[op] for op in Op),
        )
        self.evaluation_steps = spec.steps

    def environments(
        self, reward: RewardSettings, steps: int, n_envs: int, stopwatch: Stopwatch, *, whole_episodes: bool
    ) -> GrowthEnv:
        """Return the run's first `n_envs` hosts, for episodes of `steps` epochs; growth episodes are always whole."""
        spec = EnvSpec(
            task=self._task,
            slots=self._spec.slots,
            steps=steps,
            env_devices=self._spec.env_devices[:n_envs],
            growth=self._spec.settings.growth,
            reward=reward,
            kernel=self._spec.arithmetic.host_kernel,
        )
        return GrowthEnv(spec, self._data, stopwatch)

    def reward(self, settings: RewardSettings) -> Callable[[StepFacts], Floats]:
        """Return the reward function of a mode with its constants bound."""
        function = find_reward(settings.mode, self._load)
        return lambda facts: function(facts, settings)


class Growth(Kind):
    """The built-in task kind: growing networks."""

    runs_only_our_code = True
    smaller = "fewer --n-envs (in Python n_envs) or a smaller growth.batch_size need"

    def preflight(self, questions: Questions, doing: Callable[[str], None]) -> AboutTask:
        """Report all tasks, and check the one that was asked about."""
        return preflight.probe(questions, doing)

    def step_s(self, questions: Questions, device: str) -> float:
        """Return the seconds of one optimiser step of the hosts; 0 if there are no hosts to time."""
        has_hosts = questions.hosts and questions.task in catalog.names(TASKS)
        if has_hosts:
            return preflight.step_s(questions, torch.device(device))
        return 0.0

    def runs(self, lane: Lane, experiment_dir: Path) -> Callable[[RunSpec], Session]:
        """Return a function that creates a run.

        The function raises FileNotFoundError, with the remedy, if the data are missing. Each task's splits are uploaded
        once per device and kept between runs.
        """
        devices = torch_devices(lane.devices)

        @functools.cache
        def data(task: Task, data_dir: str) -> dict[str, DeviceData]:
            splits = task.load(data_dir)
            uploaded_data = {device: DeviceData.of(splits, device) for device in set(devices.values())}
            return {name: uploaded_data[device] for name, device in devices.items()}

        def session(spec: RunSpec) -> Session:
            task = task_named(spec.task)
            loader = as_planned(spec.reward_code, experiment_dir)
            return Session(spec, GrowthWorld(spec, task, data(task, spec.data_dir), loader))

        return session

    def controller(self, spec: RunSpec) -> Controller[Any]:
        """Return the controller named in `spec`, for the slots and blueprints in `spec`."""
        settings = spec.settings
        make = controller_maker(settings.controller.name)
        return make(settings.controller, spec.slots, settings.growth.blueprints)

    def world(self, path: Path, spec: RunSpec, importable: Collection[str], device: str) -> World:
        """Return the world of a saved policy, with hosts on `device`."""
        tasks = catalog.names(TASKS)
        if spec.task not in tasks:
            raise ValueError(f"{path}: its task {spec.task!r} is not installed here; there are {', '.join(tasks)}")
        task = task_named(spec.task)
        return GrowthWorld(spec, task, {device: DeviceData.of(task.load(spec.data_dir), device_here(device))})

    def summary(self, episodes: Sequence[EnvEpisode]) -> tuple[dict[str, Any], str]:
        """Return the accuracy, and how much was grown, as means and as a sentence."""
        means = {}
        for name in ("params_added", "fossilized", "pruned"):
            means[name] = float(np.mean([episode.measures[name] for episode in episodes]))
        accuracy = float(np.mean([episode.outcome for episode in episodes]))
        diverged_count = sum(episode.failed for episode in episodes)
        words = (
            f"held-out accuracy {accuracy:.2f} %, {means['params_added']:.0f} parameters added, "
            f"{means['fossilized']:.1f} fossilised, {means['pruned']:.1f} pruned, {diverged_count} diverged"
        )
        return {"held_out_accuracy": accuracy, **means, "diverged": diverged_count}, words


KIND = Growth()

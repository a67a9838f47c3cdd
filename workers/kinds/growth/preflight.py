"""Collects what planning needs to know about growth tasks: sizes, costs, data, controllers and the user's rewards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import msgspec
import numpy as np
import torch

from esper_ab.contracts.catalog import names
from esper_ab.contracts.machine import Questions, TaskFacts, UserReward
from esper_ab.contracts.private_folder import scratch_folder
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import GrowthSettings
from workers.environments import AboutTask
from workers.kinds.growth.bank.bank import Bank
from workers.kinds.growth.bank.layer_chain import trains
from workers.kinds.growth.catalogues import (
    BLUEPRINTS,
    CONTROLLERS,
    REWARDS,
    TASKS,
    blueprint_named,
    controller_maker,
    task_named,
)
from workers.kinds.growth.datasets.task import Split, Task
from workers.kinds.growth.layers import device as _device
from workers.kinds.growth.measures import MEASURES
from workers.kinds.growth.reward_lookup import find_reward, rehearse
from workers.kinds.growth.rules.seeds import SeedTable
from workers.kinds.growth.samples import DeviceSplit
from workers.kinds.growth.vocabulary import Stage
from workers.user_code.loading import as_planned, copied

_MINIBATCHES = 4  # of a timed epoch on a GPU


def probe(questions: Questions, doing: Callable[[str], None]) -> AboutTask:
    """Report all tasks, and check the task that was asked about."""
    tasks = {name: task_named(name) for name in names(TASKS)}
    controllers = names(CONTROLLERS)
    facts = tuple(map(task_facts, tasks.values()))
    blueprints = names(BLUEPRINTS)
    task_report = AboutTask(
        tasks=facts,
        rewards=names(REWARDS),
        controllers=controllers,
        blueprints=blueprints,
        native_blueprints=tuple(name for name in blueprints if trains(blueprint_named(name))),
    )
    if questions.task not in tasks:
        return task_report  # the caller refuses it and lists the existing names
    slots = questions.slots or tasks[questions.task].slots
    own_rewards = tuple(user_reward(reference, len(slots), doing) for reference in questions.user_rewards)
    doing(f"loading the data of {questions.task}")
    problems = {}
    for asked_controller in questions.controllers:
        if asked_controller.settings.name in controllers:  # the caller refuses others
            make = controller_maker(asked_controller.settings.name)
            problems[asked_controller.group] = _problem(
                partial(make, asked_controller.settings, slots, asked_controller.blueprints)
            )
    return replace(
        task_report,
        user_rewards=own_rewards,
        task_problem=_problem(partial(tasks[questions.task].load, questions.data_dir)),
        controller_problems={group: problem for group, problem in problems.items() if problem},
    )


def task_facts(task: Task) -> TaskFacts:
    """Return a task's sizes and costs, computed from its host's shape."""
    side_h, side_w = task.image[1:]
    in_channels = task.host.in_channels
    total = 0
    values = 0
    for level in range(task.host.levels):
        out_channels = task.host.base << level
        total += in_channels * out_channels * task.host.kernel**2 * side_h * side_w
        values += out_channels * side_h * side_w
        in_channels = out_channels
        if level < task.host.pools:
            side_h = side_h // 2
            side_w = side_w // 2
    return TaskFacts(
        name=task.name,
        title=task.title,
        measures=MEASURES,
        slots=task.slots,
        sizes=task.sizes,
        sample_values=task.image[0] * task.image[1] * task.image[2],
        host_params=task.host.params,
        host_multiply_adds=total + in_channels * task.host.classes,
        classes=task.host.classes,
        host_values=values,
    )


def user_reward(reference: str, n_slots: int, doing: Callable[[str], None]) -> UserReward:
    """Load and rehearse a user's reward function, and report its files.

    The function is the one that runs will load, from a file's copy or from an installed module.
    """
    doing(f"rehearsing {reference}")
    subject = f"reward mode {reference!r}"
    try:
        with scratch_folder() as folder:
            described_reward, planned_code = copied(subject, reference, folder, "copy")
            function = find_reward(reference, as_planned([planned_code], folder))
            return msgspec.structs.replace(described_reward, repeats=rehearse(function, reference, n_slots))
    except (ValueError, OSError) as error:
        problem = str(error).removeprefix(subject).removeprefix(":").strip()
        return UserReward(reference=reference, sha256="", problem=problem)


def _problem(check: Callable[[], object]) -> str:
    """Return why `check` raised; "" if it did not."""
    try:
        check()
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def step_s(questions: Questions, device: torch.device) -> float:
    """Return the seconds of one optimiser step of hosts with a seed in every slot; blueprints differ, as in a run."""
    task = task_named(questions.task)
    images = min(questions.batch_size, task.sizes[0])
    rows = np.arange(questions.hosts)
    blank_split = Split(x=np.zeros((images, *task.image), np.float32), y=np.zeros(images, np.int64))
    settings = GrowthSettings(batch_size=images)
    split = DeviceSplit.of(blank_split, device, torch.float32)
    bank = Bank(task, task.slots, rows, settings, split.x)
    table = SeedTable.empty(len(rows), len(task.slots))
    bank.begin_episode([RngPath(0) / int(row) for row in rows])
    for row, slot in np.ndindex(table.stage.shape):
        blueprint = (row + slot) % len(settings.blueprints)
        table.stage[row, slot] = Stage.TRAINING
        table.blueprint[row, slot] = blueprint
        bank.germinate(row, slot, blueprint, RngPath(0) / row / slot)
    order = np.zeros((len(rows), images * _MINIBATCHES), np.int64)
    return _device.seconds(device, partial(bank.train_epoch, table, rows, split, order)) / _MINIBATCHES

"""Resolve a requested experiment on a machine: slots, modes, blueprints, devices, precision, kernel and hosts.

Pure. Nothing is replaced silently: if a requested part is missing, the error names that part and the existing ones.
"""

from __future__ import annotations

from typing import Any, Literal

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.machine import Machine, TaskFacts
from esper_ab.contracts.margins import check_margin
from esper_ab.contracts.marked_settings import parts_of
from esper_ab.settings.experiment import AskedExperiment, ExperimentSettings, ResolvedExperiment
from esper_ab.settings.kind import settings_of
from esper_ab.settings.schema import refuse_unknown

_RESOLVED = (
    "name",
    "groups",
    "slots",
    "devices",
    "placement",
    "margin",
    "episodes",
    "code",
    "code_kept",
)  # settings of both states that may change


def resolve(asked_experiment: AskedExperiment, machine: Machine, name: str, eval_episodes: int) -> ResolvedExperiment:
    """Resolve every setting that depends on the machine, and check the others against the machine.

    Raises UsageError if the experiment cannot run on the machine. `name` is the experiment's name, and `eval_episodes`
    is the requested or chosen number of evaluation episodes.
    """
    task = _find_task(asked_experiment, machine)
    resolution = settings_of(asked_experiment.task).resolve(asked_experiment, machine, task, eval_episodes)
    unchanged_fields: dict[str, Any] = {
        key: getattr(asked_experiment, key) for key in ExperimentSettings.__struct_fields__ if key not in _RESOLVED
    }
    return ResolvedExperiment(
        **unchanged_fields,
        name=name,
        groups=resolution.groups,
        slots=resolution.slots,
        devices=resolution.devices,
        episodes=resolution.episodes or asked_experiment.episodes,
        code=resolution.code,
        code_kept=resolution.code_kept,
        placement=_resolve_placement(asked_experiment, len(resolution.devices)),
        margin=_resolve_margin(asked_experiment, task),
        arithmetic=resolution.arithmetic,
        eval_episodes=resolution.eval_episodes,
    )


def _resolve_placement(
    asked_experiment: AskedExperiment, n_devices: int
) -> Literal["spread", "share", "alternate", "sequence"]:
    """Return the requested placement; for `auto`, spread a block's runs over the devices if there are enough."""
    if asked_experiment.placement != "auto":
        return asked_experiment.placement
    if n_devices >= len(asked_experiment.groups) * asked_experiment.devices_per_run:
        return "spread"
    return "share"


def _find_task(experiment: AskedExperiment, machine: Machine) -> TaskFacts:
    if machine.trainer is not None and machine.trainer.problem:
        raise UsageError(f"trainer {experiment.trainer}: ", *parts_of(machine.trainer.problem))
    if machine.task_problem:
        raise UsageError(f"task {experiment.task}: ", *parts_of(machine.task_problem))
    refuse_unknown("task", experiment.task, [task.name for task in machine.tasks])
    return machine.task(experiment.task)


def _resolve_margin(experiment: AskedExperiment, task: TaskFacts) -> float:
    """Return the requested margin or, if there is none, the task's margin; UsageError if neither exists.

    Also raises UsageError if the margin is at least as large as the range of the outcome.
    """
    margin = experiment.margin or task.measures.margin
    outcome = task.measures.outcome
    if margin is None:
        unit = f" (unit: {outcome.apart})" if outcome.apart else ""
        raise UsageError(
            SettingName("margin"),
            f" is missing: task {task.name} declares none; give the smallest difference in "
            f"'{outcome.label}' worth acting on{unit}. `esper-ab calibrate` shows how much runs of one group differ",
        )
    check_margin(outcome, margin)
    return margin

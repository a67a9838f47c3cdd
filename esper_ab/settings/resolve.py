"""Resolve a requested experiment on a machine: slots, modes, blueprints, devices, precision, kernel and hosts.

Pure. Nothing is replaced silently: if a requested part is missing, the error names that part and the existing ones.
"""

from __future__ import annotations

import msgspec

from esper_ab.contracts.errors import Setting, UsageError
from esper_ab.contracts.machine import Machine, TaskFacts
from esper_ab.contracts.margins import check_margin
from esper_ab.settings.assignments import refuse_unknown
from esper_ab.settings.experiment import AskedExperiment, ResolvedExperiment
from esper_ab.settings.kinds import kind_of


def resolve(asked: AskedExperiment, machine: Machine, name: str, eval_episodes: int) -> ResolvedExperiment:
    """Resolve every setting that depends on the machine, and check the others against the machine.

    Raises UsageError if the experiment cannot run on the machine. `name` is the experiment's name, and `eval_episodes`
    is the requested or chosen number of evaluation episodes.
    """
    task = _find_task(asked, machine)
    found = kind_of(asked.task).resolve(asked, machine, task, eval_episodes)
    fits = len(found["devices"]) >= len(asked.groups) * asked.devices_per_run
    found |= {
        "name": name,
        "margin": _resolve_margin(asked, task),
        "placement": asked.placement.replace("auto", "spread" if fits else "share"),
    }
    values = msgspec.structs.asdict(asked) | found
    return ResolvedExperiment(**{key: values[key] for key in ResolvedExperiment.__struct_fields__})


def _find_task(experiment: AskedExperiment, machine: Machine) -> TaskFacts:
    if machine.trainer is not None and machine.trainer.problem:
        raise UsageError(f"trainer {experiment.trainer}: {machine.trainer.problem}")
    if machine.task_problem:
        raise UsageError(f"task {experiment.task}: {machine.task_problem}")
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
            Setting("margin"),
            f" is missing: task {task.name} declares none; give the smallest difference in "
            f"'{outcome.label}' worth acting on{unit}. `esper-ab calibrate` shows how much runs of one group differ",
        )
    check_margin(outcome, margin)
    return margin

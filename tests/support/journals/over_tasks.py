"""Synthetic experiments over several tasks: a plan over all of them, and a journal per task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import UNSET

from esper_ab.plan.plan import EarlierExperiment
from esper_ab.readers.external_plan import save_plan
from esper_ab.readers.joint import digest_of
from esper_ab.readers.joint_directory import PLAN_NAME, Joint, JointPart, write_joint
from esper_ab.settings.parts import share_of
from esper_ab.verdict.analysis_plan import Rule, make_plan
from esper_ab.verdict.scale import Scale
from support.journals.ready_journals import write
from support.journals.replications import experiment
from support.journals.synthetic import Shape, Synthetic

TASKS = ("digits", "mixture")
Groups = Mapping[str, Shape]


def parts_of(
    rng_seed: int, groups: Mapping[str, Groups] | Groups | None = None, tasks: tuple[str, ...] = TASKS, **changes: Any
) -> dict[str, Synthetic]:
    """Return an experiment per task, each at its share of alpha and with numbers of its own.

    `groups`: of all tasks, or by task. `changes`: of all tasks, as those of `experiment`.
    """
    settings = changes.pop("settings", {})
    parts = {}
    for task in tasks:
        own_groups = (groups or {}).get(task, groups) or Synthetic().groups
        own_groups = {
            name: replace(shape, stream=shape.stream or f"{task} {name}") for name, shape in own_groups.items()
        }
        whole = settings.get("alpha", 0.05)
        share = share_of(whole, len(tasks), len(own_groups), controlled=bool(settings.get("control")))
        seeds = changes.get("replicates", 6)
        own_settings = {"task": task, **settings, "alpha": share, "looks": (seeds,)}
        parts[task] = experiment(rng_seed, groups=own_groups, settings=own_settings, **changes)
    return parts


def write_over_tasks(
    directory: Path, parts: Mapping[str, Synthetic], alpha: float = 0.05, earlier: Sequence[Path] = ()
) -> Path:
    """Write the directory of an experiment over the tasks `parts`.

    `earlier`: directories of the experiments that it replicates.
    """
    directory.mkdir(parents=True, exist_ok=True)
    designs = {task: part.plan().design for task, part in parts.items()}
    scales = [
        Scale(task=task, outcome=design.outcome, margin=design.margin, worst=design.worst)
        for task, design in designs.items()
    ]
    first_part = next(iter(parts.values()))
    plan_settings = first_part.plan().experiment
    replicates = tuple(map(str, range(first_part.replicates)))
    rule = Rule(
        control=plan_settings.control,
        alpha=alpha,
        looks=plan_settings.looks,
        claim=plan_settings.claim,
        variances=plan_settings.variances,
    )
    plan = make_plan(tuple(first_part.groups), replicates, scales, rule)
    save_plan(plan, directory / PLAN_NAME)
    joint_parts = tuple(JointPart(name=task, folder=task, digest=part.digest) for task, part in parts.items())
    pooled_with = tuple(
        EarlierExperiment(name=folder.name, digest=digest_of(folder), rng_seed=number)
        for number, folder in enumerate(earlier)
    )
    joint_experiment = Joint(parts=joint_parts, scores={}, pooled_with=pooled_with or UNSET)
    write_joint(directory, joint_experiment, {task: f'task = "{task}"\n' for task in parts})
    for task, part in parts.items():
        write(directory / task, part.events())
    return directory

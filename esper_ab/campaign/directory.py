"""The directory of a campaign: choose its name, create it, and write the files that stand above the records.

DIRECTORY/                         one part: the experiment's directory
DIRECTORY/plan.json, joint.json    several parts: the comparisons over all of them, and the list of parts
DIRECTORY/PART.toml, PART/         a part's settings, and its experiment's directory
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from esper_ab.campaign.campaign import Campaign, CampaignPlan
from esper_ab.campaign.experiment_directory import claim_new, made
from esper_ab.campaign.leftover import is_leftover
from esper_ab.campaign.part_planning import plan_on
from esper_ab.contracts.experiment_name import check_name
from esper_ab.contracts.trainer import TRAINER_PREFIX
from esper_ab.control.reservation import reserved
from esper_ab.plan.joint_toml import joint_toml
from esper_ab.plan.settings_toml import experiment_toml
from esper_ab.readers.external_plan import save_plan
from esper_ab.readers.joint_directory import PLAN_NAME, Joint, JointPart, write_joint
from esper_ab.trackers.settings import Tracking
from esper_ab.trackers.state import save_settings


def choose_directory(campaign: Campaign) -> Path:
    """Return the directory of a campaign; UsageError if its name is not valid for a folder.

    If the request has no name, the name is generated from the first task and the time, if necessary with the first free
    suffix -2, -3, ….
    """
    if campaign.name:
        check_name(campaign.name)
        return campaign.output_dir / campaign.name
    task_name = Path(campaign.parts[0].asked.task.removeprefix(TRAINER_PREFIX)).name  # of a file, without its folders
    task = "-".join(re.findall(r"[A-Za-z0-9]+", task_name)) or "task"
    if len(campaign.parts) > 1:
        task = f"{task}-and-{len(campaign.parts) - 1}-more"
    name = campaign.generated_name.format(task=task, time=f"{datetime.now(UTC).astimezone():%Y%m%d-%H%M%S}")
    check_name(name)
    return _find_free(campaign.output_dir / name)


def _find_free(directory: Path) -> Path:
    """Return `directory` or, if that name is taken, add the first free suffix -2, -3, …."""
    suffixed_paths = (directory.with_name(f"{directory.name}-{number}") for number in itertools.count(2))
    return next(path for path in itertools.chain((directory,), suffixed_paths) if not path.exists())


@contextmanager
def claim(plan: CampaignPlan) -> Iterator[CampaignPlan]:
    """Inside this context, what the first part needs is reserved, and no other command can take the directory's name.

    Yields the plan. If another launch in the same second has taken a generated name, it is the plan under the next free
    name. A directory in which nothing was recorded, and which no process holds, is used again. Raises UsageError if
    resources are not available or if the directory cannot be created.
    """
    first_part = plan.parts[0]
    with reserved(plan.launcher, first_part.plan.lanes, first_part.machine.devices):
        yield _create(plan)


def _create(plan: CampaignPlan) -> CampaignPlan:
    directory = plan.directory
    if not plan.generated:
        if not is_leftover(directory):
            claim_new(directory)
        return plan
    while not made(directory):
        directory = _find_free(directory.with_name(plan.generated))
    if directory == plan.directory:
        return plan
    taken_words = f"{plan.directory} has just been taken by another experiment"
    click.echo(f"{taken_words}; this one uses {directory}", err=True)
    return _moved(plan, directory)


def _moved(plan: CampaignPlan, directory: Path) -> CampaignPlan:
    """Return the plan in another directory; the experiment of a single part has the name of the directory."""
    if plan.over_all is not None:
        parts = tuple(replace(part, folder=directory / part.folder.name) for part in plan.parts)
        return replace(plan, directory=directory, parts=parts)
    (part,) = plan.parts
    renamed_plan, _ = plan_on(part.machine, part.asked, directory.name, part.prior)
    return replace(plan, directory=directory, parts=(replace(part, plan=renamed_plan, folder=directory),))


def write_campaign_files(plan: CampaignPlan) -> None:
    """Write what stands above the experiments of several parts, so that `resume` can launch a part that has not begun.

    Raises DiskFull, and UsageError if the directory cannot be written.
    """
    assert plan.over_all is not None
    if plan.campaign.tracking != Tracking():
        save_settings(plan.directory, plan.campaign.tracking)
    save_plan(plan.over_all, plan.directory / PLAN_NAME)
    if (code := plan.parts[0].code) is not None:
        code.keep(plan.directory)  # for `resume`, from which parts may begin that have not
    parts = [JointPart(name=part.name, folder=part.folder.name, digest=part.plan.digest) for part in plan.parts]
    settings = {part.folder.name: experiment_toml(part.plan, part.machine) for part in plan.parts}
    joint_experiment = Joint(parts=tuple(parts), scores=plan.scores)
    if (references := plan.campaign.references) is not None:
        joint_experiment = msgspec.structs.replace(
            joint_experiment, references=str(references.folder), references_limit_bytes=references.limit_bytes
        )
    if plan.pooled_with:
        joint_experiment = msgspec.structs.replace(joint_experiment, pooled_with=plan.pooled_with)
    whole_settings = joint_toml(
        [part.plan.experiment for part in plan.parts],
        alpha=plan.over_all.design.alpha,
        grid=plan.campaign.grid,
        scores=plan.campaign.scores,
    )
    if whole_settings:
        settings["experiment"] = whole_settings
    write_joint(plan.directory, joint_experiment, settings)

"""Compare a group with itself (A/A), and write the chance variation to EXPERIMENT/calibration.json.

A calibration consists of two experiments, one after the other. After an interruption, repeat the command with the name
of the calibration: finished experiments are read, and unfinished ones are resumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from esper_ab.analysis.calibration import calibration_of
from esper_ab.analysis.observe import pairs_of, same_records
from esper_ab.campaign.campaign import CampaignPlan
from esper_ab.campaign.directory import claim
from esper_ab.campaign.part_planning import plan_on
from esper_ab.campaign.resuming import resume
from esper_ab.campaign.running import RunOptions, run
from esper_ab.contracts.errors import SettingName, UsageError, naming
from esper_ab.contracts.files_below import write_below
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.visible import visible_json
from esper_ab.design.calibration_file import FILE_NAME, Calibration
from esper_ab.journal.begun import begun
from esper_ab.journal.load import load

_DETERMINISM_EPISODES = 2  # the second one follows an update of the policy


def calibrate(
    plan: CampaignPlan, replicates: int, *, margin_named: bool, watched: bool, resume_command: Callable[[Path], str]
) -> tuple[Path, Calibration]:
    """Carry out an A/A plan, and write the calibration to its directory; return the file and what it has.

    The calibration is for an experiment of `replicates` seeds. `margin_named`: whether the plan's margin comes from the
    user or the task; if not, the calibration suggests one. `resume_command`: the command that continues the calibration
    in a directory, for error messages. Raises UsageError if the calibration has already been written.
    """
    if (plan.directory / FILE_NAME).exists():
        raise UsageError(f"{plan.directory} already exists; choose another with ", SettingName("name"))
    plan = _start_or_resume(plan, RunOptions(watched=watched), resume_command)
    deterministic = _try_determinism(plan, resume_command(plan.directory))
    history = load(plan.directory).history
    calibration = calibration_of(history, replicates, deterministic=deterministic, margin_named=margin_named)
    text = visible_json(msgspec.json.format(msgspec.json.encode(calibration), indent=2))
    write_below(plan.directory, FILE_NAME, f"{text}\n".encode())
    return plan.directory / FILE_NAME, calibration


def _start_or_resume(plan: CampaignPlan, options: RunOptions, resume_command: Callable[[Path], str]) -> CampaignPlan:
    """Start a plan, or resume it if it is unfinished, and return it.

    The returned plan has another generated name if its name was taken in the meantime. Raises
    UsageError if the directory has a different experiment.
    """
    if not begun(plan.directory):
        with claim(plan) as claimed_plan:
            directory = claimed_plan.directory
            with naming(resume_command(directory), replaced_command=_resumed(claimed_plan)):
                run(claimed_plan, options)
            return claimed_plan
    directory = plan.directory
    with naming(resume_command(directory), replaced_command=_resumed(plan)):
        history = load(directory).history
        if history.plan.digest != plan.parts[0].plan.digest:
            raise UsageError(
                f"{directory}: a different calibration was started here: settings, one of your files, or the code "
                "have changed; repeat the original command, or choose another ",
                SettingName("name"),
            )
        if not history.finished:
            resume(directory, plan.launcher, options)
    return plan


def _resumed(plan: CampaignPlan) -> str:
    """Return the command that would resume only one of a calibration's two experiments."""
    return shell_command("resume", plan.directory, *plan.launcher.flags)


def _try_determinism(plan: CampaignPlan, resume_command: str) -> bool:
    """Whether the two runs of a small paired replicate, which use two lanes, have the same records."""
    (part,) = plan.parts
    small_experiment = msgspec.structs.replace(
        part.asked,
        name="determinism",
        unpaired=False,
        seeds=1,
        looks=(),
        episodes=min(part.asked.episodes, _DETERMINISM_EPISODES),
        eval_episodes=part.asked.n_envs,
    )
    folder = plan.directory / small_experiment.name
    small_plan, cost = plan_on(part.machine, small_experiment, small_experiment.name, part.prior)
    trial = replace(
        plan,
        directory=folder,
        generated="",
        parts=(replace(part, asked=small_experiment, plan=small_plan, cost=cost, folder=folder),),
    )
    _start_or_resume(trial, RunOptions(watched=False), lambda _: resume_command)
    history = load(folder).history
    contrast = history.design.comparisons[0]
    return same_records(history, contrast, pairs_of(history, contrast))

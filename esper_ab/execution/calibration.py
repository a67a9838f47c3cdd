"""Compare a group with itself (A/A), and write the chance variation to EXPERIMENT/calibration.json.

A calibration consists of two experiments, one after the other. After an interruption, repeat the command with the name
of the calibration: finished experiments are read, and unfinished ones are resumed.
"""

from __future__ import annotations

import msgspec

from esper_ab.analysis.calibration import calibration_of
from esper_ab.analysis.observe import pairs_of, same_records
from esper_ab.contracts.errors import Setting, UsageError, naming
from esper_ab.contracts.files_below import write_below
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.visible import visible_json
from esper_ab.design.calibration_file import FILE_NAME, Calibration
from esper_ab.execution.experiment import Beforehand, PlannedExperiment, carry_out, plan_on
from esper_ab.execution.going_on import resume
from esper_ab.journal.begun import begun
from esper_ab.journal.load import load
from esper_ab.launchers import Launcher

_DETERMINISM_EPISODES = 2  # the second one follows an update of the policy


def calibrate(
    planned: PlannedExperiment, launcher: Launcher, replicates: int, *, named: bool, watched: bool, again: str
) -> Calibration:
    """Carry out an A/A plan, and write the calibration to the experiment directory.

    The calibration is for an experiment of `replicates` seeds. `named`: whether the plan's margin comes from the user
    or the task; if not, the calibration suggests one. `again`: the command that continues the calibration, for error
    messages. Raises UsageError if the calibration has already been written.
    """
    if (planned.experiment_dir / FILE_NAME).exists():
        raise UsageError(f"{planned.experiment_dir} already exists; choose another with ", Setting("name"))
    _carry_on(planned, launcher, watched=watched, again=again)
    deterministic = _try_determinism(planned, launcher, again)
    history = load(planned.experiment_dir).history
    found = calibration_of(history, replicates, deterministic=deterministic, named=named)
    shown = visible_json(msgspec.json.format(msgspec.json.encode(found), indent=2))
    write_below(planned.experiment_dir, FILE_NAME, f"{shown}\n".encode())
    return found


def _carry_on(planned: PlannedExperiment, launcher: Launcher, *, watched: bool, again: str) -> None:
    """Start an experiment, or resume it if it is unfinished; UsageError if the directory has a different experiment."""
    experiment_dir = planned.experiment_dir
    with naming(again, instead_of=shell_command("resume", experiment_dir, *launcher.flags)):  # it would resume only one
        if not begun(experiment_dir):
            carry_out(planned, launcher, watched=watched)
            return
        history = load(experiment_dir).history
        if history.plan.digest != planned.plan.digest:
            raise UsageError(
                f"{experiment_dir}: a different calibration was started here: settings, one of your files, or the code "
                "have changed; repeat the original command, or choose another ",
                Setting("name"),
            )
        if not history.finished:
            resume(experiment_dir, launcher, watched=watched)


def _try_determinism(planned: PlannedExperiment, launcher: Launcher, again: str) -> bool:
    """Whether the two runs of a small paired replicate, which use two lanes, have the same records."""
    small = msgspec.structs.replace(
        planned.asked,
        name="determinism",
        unpaired=False,
        seeds=1,
        looks=(),
        episodes=min(planned.asked.episodes, _DETERMINISM_EPISODES),
        eval_episodes=planned.asked.n_envs,
    )
    experiment_dir = planned.experiment_dir / small.name
    machine = planned.machine
    plan, cost = plan_on(machine, small, small.name, Beforehand().eval_episodes(small))
    trial = PlannedExperiment(asked=small, machine=machine, plan=plan, cost=cost, experiment_dir=experiment_dir)
    _carry_on(trial, launcher, watched=False, again=again)
    history = load(experiment_dir).history
    contrast = history.design.comparisons[0]
    return same_records(history, contrast, pairs_of(history, contrast))

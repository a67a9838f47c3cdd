"""Training a condition against itself, and writing what that says about chance as EXPERIMENT/calibration.json."""

from __future__ import annotations

from pathlib import Path

import msgspec

from esper_ab.analysis.calibration import calibration_of
from esper_ab.analysis.pairs import pairs_of, same_records
from esper_ab.contracts.below import write_below
from esper_ab.design.calibration_file import FILE_NAME, Calibration
from esper_ab.execution.experiment import PlannedExperiment, carry_out, plan_on
from esper_ab.journal.load import load
from esper_ab.launchers import Launcher

_DETERMINISM_EPISODES = 2  # the second one follows an update of the policy


def calibrate(
    planned: PlannedExperiment, launcher: Launcher, replicates: int, *, named: bool, watched: bool
) -> Calibration:
    """Carry out an A/A plan and write its calibration, for an experiment of `replicates`, into its directory.

    `named`: whether the margin of the plan is the user's or the task's; if not, the calibration has one to start from.
    """
    carry_out(planned, launcher, watched=watched)
    deterministic = _try_determinism(planned, launcher)
    history = load(planned.experiment_dir).history
    found = calibration_of(history, replicates, deterministic=deterministic, named=named)
    shown = msgspec.json.format(msgspec.json.encode(found), indent=2)
    write_below(planned.experiment_dir, FILE_NAME, shown + b"\n")
    return found


def calibration_file(experiment_dir: Path) -> Path:
    """Return the path of the calibration in an experiment directory."""
    return experiment_dir / FILE_NAME


def _try_determinism(planned: PlannedExperiment, launcher: Launcher) -> bool:
    """Whether both runs of a small paired replicate, each in its own lane, give the same records."""
    small = msgspec.structs.replace(
        planned.asked, name="determinism", unpaired=False, replicates=1, looks=(),
        episodes=min(planned.asked.episodes, _DETERMINISM_EPISODES), eval_hosts=planned.asked.n_envs,
    )
    experiment_dir, machine = planned.experiment_dir / small.name, planned.machine
    plan = plan_on(machine, small, small.name)
    trial = PlannedExperiment(asked=small, machine=machine, plan=plan, experiment_dir=experiment_dir)
    carry_out(trial, launcher, watched=False)
    history = load(experiment_dir).history
    contrast = history.design.comparisons[0]
    return same_records(history, contrast, pairs_of(history, contrast))

"""Training a condition against itself, and writing what that says about chance as RUN/calibration.json."""

from __future__ import annotations

from pathlib import Path

import msgspec

from esper_ab.analysis.calibration import calibration_of
from esper_ab.analysis.pairs import same_records
from esper_ab.design.boundary_cache import calibrate as calibrate_boundaries
from esper_ab.design.calibration_file import FILE_NAME, Calibration
from esper_ab.execution.experiment import Planned, carry_out
from esper_ab.journal.load import load
from esper_ab.launchers import Launcher
from esper_ab.plan.blocks import make_plan

_DETERMINISM_EPISODES = 2  # the second one follows an update of the policy


def calibrate(ready: Planned, launcher: Launcher, replicates: int, *, watched: bool) -> Calibration:
    """Carry out an A/A plan and write its calibration, for an experiment of `replicates`, into the run directory."""
    carry_out(ready, launcher, watched=watched)
    deterministic = _repeats_itself(ready, launcher)
    found = calibration_of(load(ready.run_dir).history, replicates, deterministic=deterministic)
    calibration_file(ready.run_dir).write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    return found


def calibration_file(run_dir: Path) -> Path:
    """Where a run directory keeps its calibration."""
    return run_dir / FILE_NAME


def _repeats_itself(ready: Planned, launcher: Launcher) -> bool:
    """Whether both runs of a small paired replicate, each in its own lane, give the same records."""
    experiment = ready.plan.experiment
    small = msgspec.structs.replace(
        experiment,
        name="determinism",
        unpaired=False,
        replicates=1,
        looks=(),
        episodes=min(experiment.episodes, _DETERMINISM_EPISODES),
        eval_episodes=1,
    )
    run_dir = ready.run_dir / small.name
    plan = make_plan(small, ready.machine, calibrate_boundaries)
    carry_out(Planned(plan=plan, machine=ready.machine, run_dir=run_dir), launcher, watched=False)
    history = load(run_dir).history
    return same_records(history, history.design.comparisons[0])

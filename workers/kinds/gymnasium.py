"""Runs of tasks of Gymnasium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from esper_ab.contracts.kinds import CONTROLLERS, GYMNASIUM
from esper_ab.contracts.messages import Lane, RunSpec
from workers.environments import Controller
from workers.gymnasium_task.world import GymWorld, RandomActions, as_planned
from workers.run.session import Session


class GymRuns:
    """Makes the runs of one worker."""

    def __init__(self, lane: Lane, experiment_dir: Path) -> None:
        self._experiment_dir = experiment_dir

    def session(self, spec: RunSpec) -> Session:
        """Make a run; ValueError, in one line, when its code is no longer what was planned."""
        return Session(spec, GymWorld(spec, as_planned(spec, self._experiment_dir)))


RUNS = GymRuns


def controller(spec: RunSpec) -> Controller[Any]:
    """Make the controller that `spec` names."""
    if spec.settings.controller.name not in CONTROLLERS[GYMNASIUM]:
        raise ValueError(f"no controller {spec.settings.controller.name!r} in a Gymnasium task; there is random")
    return RandomActions()

"""Runs whose training is the user's own."""

from __future__ import annotations

from pathlib import Path

from esper_ab.contracts.messages import Lane, RunSpec
from workers.devices.by_torch import torch_devices
from workers.trainer.session import TrainerSession, open_session


class TrainerRuns:
    """Makes the runs of one worker."""

    def __init__(self, lane: Lane, experiment_dir: Path) -> None:
        self._devices, self._uuids, self._experiment_dir = torch_devices(lane.devices), lane.uuids, experiment_dir

    def session(self, spec: RunSpec) -> TrainerSession:
        """Make a run; ValueError, in one line, when its files are no longer what was planned."""
        device = str(self._devices[spec.env_devices[0]])
        return open_session(spec, self._experiment_dir, device, self._uuids)


RUNS = TrainerRuns

"""An order of a worker on one lane; `change` is what a test needs to be otherwise."""

from __future__ import annotations

from esper_ab.contracts.messages import Lane, WorkerOrder
from esper_ab.contracts.settings import Arithmetic


def order(device: str = "cpu:0", uuid: str = "", **change: object) -> WorkerOrder:
    told = {"endpoint": "", "worker": "w00", "incarnation": 1, "experiment_dir": "", "log_file": ""}
    lane = {"lane": Lane(name=device, devices=(device,), uuids=(uuid,)), "arithmetic": Arithmetic()}
    return WorkerOrder(**(told | lane | change))

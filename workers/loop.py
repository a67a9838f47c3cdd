"""A worker's life: take orders, do a run point by point, say so, go on when released. Knows no other worker.

    Assign → warm-up → Ready → [Release → episode → EpisodeFinished] × E → Release → evaluation → Evaluated → Release
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from esper_ab.contracts import catalog
from esper_ab.contracts.messages import (
    Assign,
    EpisodeFinished,
    Evaluated,
    Progress,
    Ready,
    Release,
    RunSpec,
    Stop,
    WorkerOrder,
)
from workers.growth.environment import DeviceData
from workers.link import Link
from workers.session import OnStep, Session
from workers.tasks._task import Task


class _Stopped(Exception):
    """The coordinator said Stop in the middle of a run."""


class DataShelf:
    """The constants a worker keeps between runs: each task's splits, uploaded once per device."""

    def __init__(self, order: WorkerOrder) -> None:
        self._devices = torch_devices(order.lane.devices)
        self._shelf: dict[tuple[str, str], dict[str, DeviceData]] = {}

    def take(self, task: Task, data_dir: str) -> dict[str, DeviceData]:
        """Splits of `task` by plan name of the device; FileNotFoundError with the remedy when they are not there."""
        key = (task.name, data_dir)
        if key not in self._shelf:
            splits = task.load(data_dir)
            uploaded = {device: DeviceData.of(splits, device) for device in set(self._devices.values())}
            self._shelf[key] = {name: uploaded[device] for name, device in self._devices.items()}
        return self._shelf[key]


def torch_devices(names: tuple[str, ...]) -> dict[str, torch.device]:
    """Plan names of one lane to torch devices: the worker sees only its own GPUs, numbered from 0."""
    gpus = [name for name in names if name.startswith("cuda")]
    return {name: torch.device("cuda", gpus.index(name)) if name in gpus else torch.device("cpu") for name in names}


def serve(link: Link, order: WorkerOrder, log_to: Callable[[Path], None]) -> None:
    """Do runs until told to stop, each with a log of its own. What goes wrong is raised: the entry reports it."""
    shelf = DataShelf(order)
    while True:
        message = link.receive(None)
        if isinstance(message, Stop):
            print(f"stop: {message.reason}", flush=True)
            return
        if isinstance(message, Assign):
            try:
                log_to(Path(order.run_dir) / message.spec.log_file)
                _run(link, Path(order.run_dir), message.spec, shelf)
            except _Stopped as stop:
                print(f"stop: {stop}", flush=True)
                return


def _run(link: Link, run_dir: Path, spec: RunSpec, shelf: DataShelf) -> None:
    """One run from its warm-up to its evaluation."""
    print(f"{spec.ref.run}: {spec.episodes} episodes of {spec.n_envs} environments on {spec.ref.device}", flush=True)
    task: Task = catalog.entry("workers.tasks", spec.task, "TASK")
    session = Session(spec, task, shelf.take(task, spec.data_dir))
    warm_up_s = session.warm_up(_progress(link, spec, 0, "warm-up"))
    link.send(Ready(run=spec.ref, warm_up_s=round(warm_up_s, 3)))
    _await_release(link, spec, 0)
    for episode in range(spec.episodes):
        point = episode + 1
        on_step, on_update = _progress(link, spec, point, "train"), _progress(link, spec, point, "update")
        link.send(EpisodeFinished(run=spec.ref, seq=point, record=session.train(episode, on_step, on_update)))
        _await_release(link, spec, point)
    point = spec.episodes + 1
    record = session.evaluate(run_dir, _progress(link, spec, point, "evaluate"))
    link.send(Evaluated(run=spec.ref, seq=point, record=record))
    _await_release(link, spec, point)
    print(f"{spec.ref.run}: done", flush=True)


def _await_release(link: Link, spec: RunSpec, point: int) -> None:
    """Return when `point` is on disk and the run may go on."""
    while True:
        message = link.receive(None)
        if isinstance(message, Stop):
            raise _Stopped(message.reason)
        if isinstance(message, Release) and (message.run, message.point) == (spec.ref.run, point):
            return


def _progress(link: Link, spec: RunSpec, point: int, phase: str) -> OnStep:
    def on_step(step: int) -> None:
        link.send(Progress(run=spec.ref, point=point, step=step, phase=phase))

    return on_step

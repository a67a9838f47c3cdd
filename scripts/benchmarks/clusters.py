"""Benchmark of launchers: time to detect and recover from a fault, and to the first release."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from support import conducted, fake_plans, ray_cluster, slurm_cluster

from benchmarks.machine import FEW
from esper_ab.contracts.children import Device
from esper_ab.control import experiment_run
from esper_ab.journal.events import EpisodeRecorded, Incident, MilestoneReleased, RunReady, WorkerStarted
from esper_ab.launchers import Launcher
from esper_ab.launchers.local import LocalLauncher

_ROOT = Path(__file__).resolve().parents[2]
_ENTRY = "support.fake_worker:main"
_PLAN = fake_plans.plan(6, ("a", "b", "c"), seeds=4, episodes=3)
_CORES = 2  # of each node of the tests' clusters
_VICTIM = "c/0"


def measure(repeats: int) -> dict[str, Any]:
    """Measure every installed launcher, with workers that train nothing."""
    often = 1 if repeats <= FEW else 3
    os.environ["PYTHONPATH"] = f"{_ROOT / 'tests'}:{_ROOT}"  # of everything that is started on a node
    faults: list[dict[str, Any]] = []
    for name, opened in (("local", _local), ("slurm", _slurm), ("ray", _ray)):
        with opened() as make:
            for fault in ("worker", "supervisor") if make is not None else ():
                if name == "local" and fault == "supervisor":
                    continue
                found = [_struck(make, fault) for _ in range(often)]
                one = {key: sorted(each[key] for each in found)[often // 2] for key in found[0]}
                faults.append({"launcher": name, "fault": f"SIGKILL of a {fault}", **one})
                print(faults[-1], flush=True)
    return {"faults": faults}


@contextmanager
def _local() -> Iterator[Callable[[], Launcher] | None]:
    yield lambda: LocalLauncher(_ENTRY, "tcp")


@contextmanager
def _slurm() -> Iterator[Callable[[], Launcher] | None]:
    if slurm_cluster.missing():
        yield None
        return
    from esper_ab.launchers.slurm import SlurmLauncher  # only where it is installed

    def make() -> Launcher:
        made = SlurmLauncher(_ENTRY)
        made.use(_devices([node.name for node in made.nodes]))
        return made

    with tempfile.TemporaryDirectory() as folder, slurm_cluster.SlurmCluster(Path(folder)) as cluster:
        job = cluster.allocate("--nodes=3", "--ntasks-per-node=1", "--cpus-per-task=2", "--no-kill")
        os.environ.update(cluster.of_batch(job))
        yield make


@contextmanager
def _ray() -> Iterator[Callable[[], Launcher] | None]:
    if ray_cluster.missing():
        yield None
        return
    from esper_ab.launchers.ray import RayLauncher

    def make() -> Launcher:
        made = RayLauncher(_ENTRY)
        made.use(_devices([node.name for node in made.nodes]))
        return made

    with ExitStack() as stack:
        os.environ["RAY_ADDRESS"] = stack.enter_context(ray_cluster.RayNodes()).address
        import ray

        stack.callback(ray.shutdown)
        yield make


def _devices(nodes: list[str]) -> list[Device]:
    return [
        Device(name=f"cpu:{_CORES * place + core}", title="", uuid="", memory_bytes=1 << 30, node=node)
        for place, node in enumerate(nodes)
        for core in range(_CORES)
    ]


def _struck(make: Callable[[], Launcher], fault: str) -> dict[str, float]:
    """Return seconds from the start to the first release, from a kill to the kill's journal entry, and from the kill to
    the run's next report.
    """
    at: dict[str, float] = {}

    def look(event: object) -> None:
        now = time.monotonic()
        if isinstance(event, MilestoneReleased):
            at.setdefault("released", now)
        elif isinstance(event, EpisodeRecorded) and event.record.run.name == _VICTIM and "struck" not in at:
            lane = event.record.run.device
            pid = next(one.pid for one in watcher.seen if isinstance(one, WorkerStarted) and one.device == lane)
            at["struck"] = now
            os.kill(pid if fault == "worker" else _parent(pid), signal.SIGKILL)
        elif isinstance(event, Incident) and event.category == "worker_death":
            at.setdefault("known", now)
        elif isinstance(event, RunReady) and event.run.name == _VICTIM and "struck" in at:
            at.setdefault("good", now)

    watcher = conducted.Watcher(look)
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        experiment_run.run(_PLAN, Path(folder), make(), [watcher])
    return {
        "first_release_s": at["released"] - began, "known_s": at["known"] - at["struck"],
        "good_s": at["good"] - at["struck"],
    }  # fmt: skip


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

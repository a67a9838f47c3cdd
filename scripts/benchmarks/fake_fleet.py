"""Fake workers for benchmarks: many per process, each with its own real socket, all reporting at once.

A fleet is a launcher for a coordinator in this process. As with Slurm, it uses node supervisors; each node is a process
(`fake_node`). If possible, the nodes avoid the first core, so that the coordinator always has that core.
"""

import os
import sys
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.fake_node import Meeting, await_all
from benchmarks.fake_node import Node as Told
from esper_ab.contracts.worker_order import WorkerOrder
from esper_ab.launchers import Launcher, Node, Transport
from esper_ab.launchers._supervised import DESCRIPTORS, NodeSupervisor, NodeWorker, PipedSupervisor

_SCRIPTS = Path(__file__).resolve().parents[1]
_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = (
    f"import sys; sys.path[:0] = [{str(_SCRIPTS)!r}, {str(_ROOT)!r}]; "
    "from benchmarks.fake_node import main; main(sys.argv[1])"
)


@dataclass
class Fleet(Launcher):
    """A launcher; `results` are available after the experiment."""

    name = "fake fleet"

    pools: int  # number of processes that hold its workers
    workers: int  # number of workers in all
    transport: Transport = "ipc"
    _supervisors: list[NodeSupervisor] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Return when all processes have started."""
        super().__init__()
        over_tcp = self.transport == "tcp"
        self.child_processes = not over_tcp  # several in one
        self.descriptors = 1 if over_tcp else 2  # a connection; over ipc, also the socket that accepts it
        self.own_descriptors = DESCRIPTORS * self.pools
        self.nodes = tuple(Node(name=f"n{n}", cores=1) for n in range(self.pools)) if over_tcp else ()
        self._folder = tempfile.TemporaryDirectory()
        meeting_folder = Path(self._folder.name) / "meeting"
        Meeting.make(meeting_folder, self.pools)
        cores = sorted(os.sched_getaffinity(0))
        for index in range(self.pools):
            pool_order = Told(
                index=index,
                workers=len(range(index, self.workers, self.pools)),
                cores=tuple(cores[1:] or cores),
                coordinator=os.getpid(),
                meeting=str(meeting_folder),
                results=str(self._results_of(index)),
            )
            command = [sys.executable, "-c", _PROGRAM, msgspec.json.encode(pool_order).decode()]
            self._supervisors.append(NodeSupervisor(f"n{index}", partial(PipedSupervisor, command)))
        await_all(meeting_folder, 1)

    def _results_of(self, index: int) -> Path:
        return Path(self._folder.name) / f"{index}.json"

    def start(self, order: WorkerOrder) -> NodeWorker:
        return self._supervisors[int(order.worker.removeprefix("w")) % self.pools].start(order, "")

    def results(self) -> dict[str, Any]:
        """Return what the processes measured: the end of start-up, and rounds with every run's times (monotonic, s)."""
        pools = [msgspec.json.decode(self._results_of(index).read_bytes()) for index in range(self.pools)]
        for supervisor in self._supervisors:
            supervisor.dismiss()
        for supervisor in self._supervisors:
            supervisor.leave()
        self._folder.cleanup()
        return {
            "started": {
                key: max(pool_results["started"][key] for pool_results in pools) for key in ("at", "coordinator_s")
            },
            "rounds": [
                {
                    "sent": {run: time_s for pool in parts for run, time_s in pool["sent"].items()},
                    "released": {run: time_s for pool in parts for run, time_s in pool["released"].items()},
                    "coordinator_s": parts[0]["coordinator_s"],
                }
                for parts in zip(*(pool_results["rounds"] for pool_results in pools), strict=True)
            ],
        }

"""Launcher of workers in steps of a Slurm job, one step per node, inside the allocation of this process.

A step is a supervisor (`contracts/supervisor`), which starts all workers of its node. A local process, srun, represents
the supervisor: srun carries standard input there and standard output back, and ends with the supervisor. Orders go
through standard input, which closes when the coordinator ends. Keys and ends of workers come back through standard
output. If a worker cannot start, its log says why.

GPUs are selected by the UUIDs from the preflight, because steps that share an allocation see all GPUs of their node.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import chain

from esper_ab.contracts import supervisor
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.own_packages import child_command, isolated_command
from esper_ab.contracts.worker_order import WorkerOrder
from esper_ab.launchers import Errand, Launcher, LauncherFactory, Node, Transport, begin_here
from esper_ab.launchers._supervised import DESCRIPTORS, NodeSupervisor, NodeWorker, PipedSupervisor

_TALK_S = 60.0  # time for Slurm's controller to answer
# Set by Slurm, or by a user by hand.
_JOB = "SLURM_JOB_ID"
_NODELIST = "SLURM_JOB_NODELIST"
_ANY_PORT = 9  # nothing is sent there: only the route to the node is looked up
# A step with everything that the job has on one node; its end does not affect other steps.
_SRUN = (
    "srun",
    "--nodes=1",
    "--ntasks=1",
    "--overlap",
    "--cpu-bind=quiet,none",
    "--export=ALL",
    "--kill-on-bad-exit=0",
    "--unbuffered",
)


class SlurmLauncher(Launcher):
    """Starts each worker as a child of its node's supervisor, in the job that this process belongs to."""

    name = "slurm"
    descriptors = 1  # a connection

    transport: Transport = "tcp"
    needs_tcp = True

    def __init__(self, entry: str = "", transport: Transport | None = None) -> None:
        """Raises UsageError if this process is outside an allocation, or if the transport is ipc."""
        super().__init__(entry, transport)
        if missing_variable := next((variable for variable in (_JOB, _NODELIST) if variable not in os.environ), ""):
            raise UsageError(
                f"launcher slurm must run inside a Slurm allocation, but {missing_variable} is not set: "
                "`esper-ab slurm-script` prints a script for sbatch; or launch inside salloc"
            )
        if shutil.which("srun") is None:
            raise UsageError("launcher slurm: srun is not installed on this machine")
        self.nodes = _nodes(os.environ)
        self.address = _own_address([node.name for node in self.nodes])
        self.own_descriptors = DESCRIPTORS * len(self.nodes)
        self._supervisors: dict[str, list[NodeSupervisor]] = defaultdict(list)  # by node; the last one is in charge

    def begin(self, node: str, module: str, line: bytes) -> Errand:
        return begin_here([*_SRUN, f"--nodelist={node}", *child_command(module, outlives=True)], line)

    def start(self, order: WorkerOrder) -> NodeWorker:
        return self._supervisor(order.node or self.nodes[0].name).start(order, self.entry)

    def _supervisor(self, node: str) -> NodeSupervisor:
        """Return the node's supervisor; start a new one if the last is gone or failed to end a worker."""
        node_supervisors = self._supervisors[node]
        if not node_supervisors or not node_supervisors[-1].is_reliable:
            step = [*_SRUN, f"--nodelist={node}", "--job-name=workers", *isolated_command(supervisor.__file__)]
            node_supervisors.append(NodeSupervisor(node, partial(PipedSupervisor, step)))
            for earlier_supervisor in node_supervisors[-2:-1]:
                earlier_supervisor.give_up()
        return node_supervisors[-1]

    def release(self) -> None:
        supervisors = list(chain.from_iterable(self._supervisors.values()))
        for node_supervisor in supervisors:
            node_supervisor.dismiss()
        for node_supervisor in supervisors:
            node_supervisor.leave()
        self._supervisors.clear()


def _nodes(environment: os._Environ[str]) -> tuple[Node, ...]:
    """Return the nodes of the allocation in Slurm's order, the batch script's node first."""
    names = _ask("show", "hostnames", environment[_NODELIST]).split()
    cores = expand_cores(environment.get("SLURM_JOB_CPUS_PER_NODE", ""))
    if len(cores) != len(names):
        raise UsageError(f"launcher slurm: SLURM_JOB_CPUS_PER_NODE lists {len(cores)} nodes, not {len(names)}")
    return tuple(Node(name=name, cores=count) for name, count in zip(names, cores, strict=True))


def expand_cores(text: str) -> list[int]:
    """Return the cores per node from Slurm's notation: "4(x2),8" gives 4, 4, 8. Returns [] if the text is invalid."""
    cores: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if match is None:
            return []
        cores += [int(match[1])] * int(match[2] or 1)
    return cores


def _own_address(nodes: Sequence[str]) -> str:
    """Return this machine's IPv4 address on the route to the other nodes, at which those nodes can reach it."""
    first_node = os.environ.get("SLURMD_NODENAME", nodes[0])
    other_node = next((node for node in nodes if node != first_node), "")
    if not other_node:
        return "127.0.0.1"
    address = re.search(r"\bNodeAddr=(\S+)", _ask("-o", "show", "node", other_node))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
            route.connect((address[1] if address else other_node, _ANY_PORT))
            return str(route.getsockname()[0])
    except OSError as error:
        raise UsageError(f"launcher slurm: cannot reach node {other_node} by IPv4: {error}") from None


def _ask(*arguments: str) -> str:
    try:
        process = subprocess.run(
            ["scontrol", *arguments],
            capture_output=True,
            text=True,
            timeout=_TALK_S,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError) as error:
        last_words = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1:]
        raise UsageError(f"launcher slurm: scontrol {' '.join(arguments)}: {''.join(last_words)}") from None
    return process.stdout


LAUNCHER: LauncherFactory = SlurmLauncher

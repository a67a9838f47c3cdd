"""Launcher of workers as steps of a Slurm job: `srun` for each, inside the allocation that this process runs in.

An srun is a process of this machine that stands for one of another: it passes signals on, carries standard input there
and standard output back, and ends with its task. The order goes to the worker by standard input, which stays open: its
end is the end of the coordinator. The worker's public key comes back by standard output. What srun itself and a worker
that cannot begin have to say is in the worker's log.

GPUs are dealt out by the preflight's UUIDs: steps that share an allocation all see those of their node.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from esper_ab.contracts.below import open_below
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.messages import WorkerOrder
from esper_ab.contracts.own_packages import child_command
from esper_ab.launchers import Errand, KeyExchange, LauncherFactory, Node, Transport, begin_here
from esper_ab.launchers._places import LanePlaces
from esper_ab.launchers._sentinel import wait_for

DEFAULT_ENTRY = "workers.process.entry:main"
_TALK_S = 60.0  # for Slurm's controller to answer
_ANY_PORT = 9  # nothing is sent there: only the way to the node is asked for
# A step per worker, whose end concerns no other, on all that the job has on the node.
_SRUN = (
    "srun", "--nodes=1", "--ntasks=1", "--overlap", "--cpu-bind=quiet,none", "--export=ALL", "--kill-on-bad-exit=0",
    "--unbuffered",
)  # fmt: skip
_SIGNALLED = 128  # srun's exit status for a task that signal N ended is this plus N


def as_exitcode(status: int) -> int:
    """Exit code of srun's `status`: minus a signal's number, where the status means one; it has others of its own."""
    return _SIGNALLED - status if status - _SIGNALLED in set(signal.Signals) else status


class SlurmWorker:
    """One srun, in a session of its own, so that a terminal's signals do not reach it."""

    ended_how = ""

    def __init__(self, order: WorkerOrder, command: Sequence[str]) -> None:
        self.name = order.identity
        log = open_below(Path(order.experiment_dir), order.log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            self._srun = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        finally:
            os.close(log)
        self._stdin, self._stdout = self._srun.stdin, self._srun.stdout
        assert self._stdin is not None, "both are pipes"
        assert self._stdout is not None, "both are pipes"
        self.pid = self._srun.pid
        try:
            self.sentinel = os.pidfd_open(self.pid)
        except OSError:
            self._srun.kill()
            self._srun.communicate()
            raise
        with suppress(BrokenPipeError):  # it has ended already, as its sentinel says
            self._stdin.write(msgspec.json.encode(order) + b"\n")
            self._stdin.flush()
        self.keys = KeyExchange(self._stdout.fileno(), self._stdin.fileno(), self._stdout.close)

    @property
    def exitcode(self) -> int | None:
        status = self._srun.poll()
        return None if status is None else as_exitcode(status)

    def dump_stacks(self) -> None:
        """Request the stacks by SIGUSR1, which srun passes on."""
        if self.exitcode is None:
            self._srun.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        """End srun, upon which Slurm ends the task; where its node cannot be reached, the worker's own watch does."""
        if self.exitcode is None:
            self._srun.kill()

    def join(self, timeout_s: float) -> bool:
        if self.sentinel >= 0:
            wait_for(self.sentinel, timeout_s)
            if self.exitcode is None:
                return False
            os.close(self.sentinel)
            self.sentinel = -1
            self.keys.close()
            if self._stdin is not None:
                self._stdin.close()
        return True


class SlurmLauncher(LanePlaces):
    """Starts each worker as a step of the job that this process belongs to."""

    name = "slurm"
    child_processes = False
    processes = 1  # srun; how many threads it has is its own affair
    descriptors = 5  # a pidfd, two pipes, a connection and, for a moment, a log

    def __init__(self, entry: str = DEFAULT_ENTRY, transport: Transport = "tcp") -> None:
        """UsageError outside of an allocation, and over ipc."""
        super().__init__()
        if transport != "tcp":
            raise UsageError("launcher slurm: workers on other machines need --transport tcp, which it takes by itself")
        if "SLURM_JOB_ID" not in os.environ:
            raise UsageError(
                "launcher slurm starts workers in the allocation that it runs in, and SLURM_JOB_ID is not set: "
                "`esper-ab slurm-script` prints a script for sbatch; or begin within salloc"
            )
        if shutil.which("srun") is None:
            raise UsageError("launcher slurm: there is no srun on this machine")
        self._entry = entry
        self.transport: Transport = transport
        self.nodes = _nodes(os.environ)
        self.address = _own_address([node.name for node in self.nodes])

    def begin(self, node: str, module: str, *arguments: str) -> Errand:
        there = child_command(module, *arguments, outlives=True)
        return begin_here([*_SRUN, f"--nodelist={node}", "--input=none", *there])

    def start(self, order: WorkerOrder) -> SlurmWorker:
        node = order.node or self.nodes[0].name
        begin = child_command("esper_ab.launchers._on_node", self._entry, outlives=True)
        return SlurmWorker(order, [*_SRUN, f"--nodelist={node}", f"--job-name={order.worker}", *begin])


def _nodes(environment: os._Environ[str]) -> tuple[Node, ...]:
    """The nodes of the allocation, the batch script's first, as Slurm lists them."""
    names = _ask("show", "hostnames", environment["SLURM_JOB_NODELIST"]).split()
    cores = expand_cores(environment.get("SLURM_JOB_CPUS_PER_NODE", ""))
    if len(cores) != len(names):
        raise UsageError(f"launcher slurm: {len(names)} nodes and cores for {len(cores)}: SLURM_JOB_CPUS_PER_NODE?")
    return tuple(Node(name=name, cores=count) for name, count in zip(names, cores, strict=True))


def expand_cores(text: str) -> list[int]:
    """Cores per node from Slurm's notation: "4(x2),8" is 4, 4, 8; an empty list for anything else."""
    found: list[int] = []
    for part in text.split(","):
        matched = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if matched is None:
            return []
        found += [int(matched[1])] * int(matched[2] or 1)
    return found


def _own_address(nodes: Sequence[str]) -> str:
    """This machine's IPv4 address on the way to the other nodes, which is where they can reach it."""
    here = os.environ.get("SLURMD_NODENAME", nodes[0])
    other = next((node for node in nodes if node != here), "")
    if not other:
        return "127.0.0.1"
    at = re.search(r"\bNodeAddr=(\S+)", _ask("-o", "show", "node", other))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
            way.connect((at[1] if at else other, _ANY_PORT))
            return str(way.getsockname()[0])
    except OSError as error:
        raise UsageError(f"launcher slurm: node {other} cannot be reached by IPv4: {error}") from None


def _ask(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["scontrol", *arguments], capture_output=True, text=True, timeout=_TALK_S, check=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1:]
        raise UsageError(f"launcher slurm: scontrol {' '.join(arguments)}: {''.join(said)}") from None
    return done.stdout


LAUNCHER: LauncherFactory = SlurmLauncher

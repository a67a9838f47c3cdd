"""A catalogue of launchers, one file each: they start workers, place them and report their end.

A file NAME.py provides `LAUNCHER`, a `LauncherFactory`; `--launcher NAME` finds it by its name and imports no other.
A launcher knows nothing of the protocol, and the control plane never imports a worker: entry points are names.
"""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Literal, Protocol

import msgspec

from esper_ab.contracts import link_keys
from esper_ab.contracts.children import Device
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.messages import Lane, WorkerOrder
from esper_ab.contracts.own_packages import child_command, child_environment

# Connection of workers to the coordinator. ipc: a socket that only this user of this machine can open; tcp: CURVE,
# with keys for these workers only. No result depends on it.
Transport = Literal["ipc", "tcp"]
_NEEDS_TCP = "workers on other machines need --transport tcp, which it takes by itself"
_LINE_BYTES = 256  # more than a public key has; what is written at once to a socket pair is read at once


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that a launcher may start workers on, beside or in the place of this one."""

    name: str  # as the launcher calls it
    cores: int  # that may be used there
    gpus: int | None = None  # that may be used there; None: all that a process sees there


class KeyExchange:
    """How a worker's public key gets here before the worker connects: a line each way, over its launcher.

        worker → PUBLIC KEY, newline          coordinator → newline: the key is known, connect

    libzmq gives a connection up that is refused once, so a worker waits until its key is known.
    """

    def __init__(self, ours: socket.socket) -> None:
        """`ours`: the other end of the one that the worker has."""
        self._ours = ours

    @property
    def descriptor(self) -> int:
        """Becomes readable when the worker has said its key, or has ended; several workers may have one. -1: closed."""
        return self._ours.fileno()

    def public(self) -> str | None:
        """The key; None while nothing was said, "" when something else was, or nothing will be. To be asked when
        `descriptor` is readable."""
        line = self._ours.recv(_LINE_BYTES).decode(errors="replace").rstrip("\n")
        return line if link_keys.is_public_key(line) else ""

    def admit(self) -> None:
        """Let the worker connect. One that is gone meanwhile shows by its end."""
        with suppress(OSError):
            self._ours.send(b"\n")

    def close(self) -> None:
        self._ours.close()


class Worker(Protocol):
    """Handle of one started worker."""

    @property
    def name(self) -> str:
        """Identity of the worker: "w00/1"."""

    @property
    def pid(self) -> int:
        """Process that is the worker or, of another machine, stands for it here; this one's for a thread.

        Where nothing here stands for it, the number of its supervisor there.
        """

    @property
    def keys(self) -> KeyExchange | None:
        """How its public key is heard; None over ipc, which needs none."""

    @property
    def sentinel(self) -> int:
        """File descriptor that becomes readable, and stays so, once the worker has ended.

        Several workers may have one: it is written to, and never read, whenever one of them has ended or said its key.
        """

    @property
    def exitcode(self) -> int | None:
        """Exit code: None while running, 0 after success, minus a signal's number when a signal ended it.

        No evidence of what a worker did: one whose node is lost counts as ended by SIGKILL.
        """

    @property
    def ended_how(self) -> str:
        """How it ended, in words that follow its name, where its launcher knows more than the exit code; else ""."""

    def dump_stacks(self) -> None:
        """Write the stacks of all its threads to its log; returns at once, the log follows shortly."""

    def kill(self) -> None:
        """End the worker now, whatever it is doing; a thread cannot be ended and is abandoned."""

    def join(self, timeout_s: float) -> bool:
        """Wait for its end and free its resources; False when it has not ended in time."""


class Errand(AbstractContextManager["Errand"], Protocol):
    """A command that was begun, as `subprocess.Popen` has it; what it takes is given back when it is left."""

    @property
    def returncode(self) -> int | None:
        """Its exit status once `communicate` has returned."""

    def communicate(self, *, timeout: float) -> tuple[bytes, bytes]:
        """All that it wrote to standard output and standard error, when it has ended.

        subprocess.TimeoutExpired, with its standard error so far, when it has not in time; it may be asked again.
        """

    def kill(self) -> None:
        """End it now."""


class Launcher:
    """Starts workers, each of which calls the entry point with its order and sees the experiment directory.

    Lanes are positions: which devices they are, and on which node, is settled when a worker starts. What is here is
    right for a launcher on this machine.
    """

    name = ""
    # Flags that have a command start workers in this way, for the one with which a message says how to go on.
    flags: tuple[str, ...] = ()
    transport: Transport = "ipc"  # that its workers need, unless another is asked for
    needs_tcp = False  # whether its workers may be on other machines
    entry = "workers.process.entry:main"  # "module:function" of its workers, likewise; called with the WorkerOrder
    address = "127.0.0.1"  # of this machine, at which its workers reach the coordinator over tcp
    nodes: tuple[Node, ...] = ()  # that its workers run on, and may be lost with; empty: this machine
    child_processes = False  # whether every worker is a child of this process, which a signal can stop or end
    descriptors: int  # of this process that one of its workers takes, with that of its connection
    own_descriptors = 0  # that it takes itself, however many workers it has

    def __init__(self, entry: str = "", transport: Transport | None = None) -> None:
        """UsageError when it cannot start workers here."""
        self.entry, self.transport = entry or self.entry, transport or self.transport
        if self.needs_tcp and self.transport != "tcp":
            raise UsageError(f"launcher {self.name}: {_NEEDS_TCP}")
        self._devices: dict[str, Device] = {}

    def begin(self, node: str, module: str, line: bytes) -> Errand:
        """Run a module of ours as a program on a node of `nodes`, as `begin_here` does on this machine."""
        return begin_here(child_command(module), line)

    def use(self, devices: Iterable[Device]) -> None:
        """From now on lanes stand for these devices, by their names, as the preflight has found them."""
        self._devices = {device.name: device for device in devices}

    def check_lanes(self, lanes: Sequence[Lane]) -> None:
        """UsageError unless each lane's devices are there, of the kind that was planned, and on one node."""
        if not self._devices:
            return
        for lane in lanes:
            where = f"launcher {self.name} on {lane.name}"
            # Without nodes, a lane on the CPU is not bound to a core: this machine shares its cores among all of them.
            bound = [device for device in lane.devices if self.nodes or not device.startswith("cpu:")]
            lacking = [device for device in bound if device not in self._devices]
            if lacking:
                there = [name for name in self._devices if name.partition(":")[0] == lacking[0].partition(":")[0]]
                span = f"only {there[0]} to {there[-1]}" if there else "and no other of its kind"
                raise UsageError(f"{where}: there is no {lacking[0]} now, {span}; go on with as many as planned")
            found = [self._devices[device] for device in lane.devices if device in self._devices]
            for planned, device in zip(lane.titles, found, strict=False):
                if planned != device.title:
                    raise UsageError(
                        f"{where}: {device.name} is {device.title or 'a core'}{_on(device.node)}, and the plan was "
                        f"made for {planned or 'a core'}: a run never changes the kind of its devices; go on where "
                        "there are such"
                    )
            if len({device.node for device in found}) > 1:
                across = " and ".join(f"{device.name}{_on(device.node)}" for device in found)
                raise UsageError(f"{where}: one run would be on two nodes ({across}); choose the devices by --devices")

    def reserve(self, lanes: Sequence[Lane]) -> None:
        """Have all that the workers of these lanes take, at once or not at all, in the place of what it had before.

        Waits for it, for a limited time; UsageError, which names what is lacking, after that. Before the first start.
        """

    def release(self) -> None:
        """Give back what was reserved, when no worker is left that anybody needs."""

    def bound(self, order: WorkerOrder) -> WorkerOrder:
        """Return the order with the devices and node that its lane stands for now; OSError while they are not known."""
        devices = [self._devices[name] for name in order.lane.devices if name in self._devices]
        if not devices:
            return order
        lane = msgspec.structs.replace(order.lane, uuids=tuple(device.uuid for device in devices))
        return msgspec.structs.replace(order, lane=lane, node=devices[0].node)

    def start(self, order: WorkerOrder) -> Worker:
        """Return at once; OSError when it cannot be started now. What becomes of it shows in its Hello or its end."""
        raise NotImplementedError


def _on(node: str) -> str:
    return f" on {node}" if node else ""


def begin_here(command: Sequence[str], line: bytes) -> subprocess.Popen[bytes]:
    """Run `command` with `line` as its input, in the environment that `child_environment` makes of this one.

    Its output is read. The line comes from a file: a pipe would block until the command reads it.
    """
    environment = child_environment(os.environ)
    with tempfile.TemporaryFile() as file:
        file.write(line)
        file.seek(0)
        return subprocess.Popen(command, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


class LauncherFactory(Protocol):
    """Type of `LAUNCHER`."""

    def __call__(self, entry: str = ..., transport: Transport = ...) -> Launcher:
        """Make a launcher; it may have further arguments, by the names of the flags that are its alone."""

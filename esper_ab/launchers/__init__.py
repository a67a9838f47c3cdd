"""A catalogue of launchers, one file each: they start workers, place them and report their end.

A file NAME.py provides `LAUNCHER`, which is a `LauncherFactory`; `--launcher NAME` imports only that file. Launchers do
not depend on the protocol. Entry points are passed by name, so that the control plane never imports a worker.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Literal, Protocol

import msgspec

from esper_ab.contracts import link_keys
from esper_ab.contracts.child import Child, child_of
from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.machine import Device
from esper_ab.contracts.own_packages import child_command, child_environment
from esper_ab.contracts.worker_order import Lane, WorkerOrder

# How workers connect to the coordinator. ipc: a socket that only this user of this machine can open; tcp: CURVE, with
# keys for these workers only. No result depends on the choice.
Transport = Literal["ipc", "tcp"]
_LINE_BYTES = 256  # longer than a public key; what one write puts into a socket pair, one read returns


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A machine on which a launcher may start workers."""

    name: str  # as the launcher calls it
    cores: int  # number of usable cores
    gpus: int | None = None  # number of usable GPUs; None: all that a process sees there


class KeyExchange:
    """Passes a worker's public key to the coordinator before the worker connects: one line each way, via the launcher.

        worker → PUBLIC KEY, newline          coordinator → newline: the key is known, connect

    A worker waits until its key is known, because libzmq gives up a connection that was refused once.
    """

    def __init__(self, our_socket: socket.socket) -> None:
        """`our_socket`: the coordinator's end of the socket pair."""
        self._ours = our_socket

    @property
    def descriptor(self) -> int:
        """Becomes readable once the worker has sent its key or ended; -1 once closed. Several workers may share it."""
        return self._ours.fileno()

    def public(self) -> str | None:
        """Return the key; None if nothing has arrived yet, "" if what arrived is not a key or the worker ended.

        Call this method when `descriptor` is readable.
        """
        line = self._ours.recv(_LINE_BYTES).decode(errors="replace").rstrip("\n")
        return line if link_keys.is_public_key(line) else ""

    def admit(self) -> None:
        """Tell the worker to connect. If the worker has already ended, its sentinel shows that."""
        with suppress(OSError):
            self._ours.send(b"\n")

    def close(self) -> None:
        self._ours.close()


class Worker(Protocol):
    """Handle of one started worker."""

    @property
    def name(self) -> str:
        """The worker's identity, such as "w00/1"."""

    @property
    def pid(self) -> int:
        """Pid of the local process that is the worker or represents a remote one; for a thread, this process's pid.

        If no local process represents the worker, this is the pid of its supervisor on the other machine.
        """

    @property
    def keys(self) -> KeyExchange | None:
        """The exchange of the worker's public key; None over ipc, where no key is needed."""

    @property
    def sentinel(self) -> int:
        """File descriptor that becomes readable, and stays so, once the worker has ended.

        Several workers may share a descriptor. It is written to whenever a worker ends or sends its key, and is never
        read.
        """

    @property
    def exitcode(self) -> int | None:
        """Exit code: None while running, 0 after success, minus the signal number if a signal killed it.

        The exit code does not prove how the worker ended: a worker whose node is lost counts as killed by SIGKILL.
        """

    @property
    def ended_how(self) -> str:
        """A phrase that follows the worker's name and says how the worker ended.

        "" if the launcher knows no more than the exit code.
        """

    def dump_stacks(self) -> None:
        """Make the worker write the stacks of all its threads to its log. Returns at once; the log follows shortly."""

    def kill(self) -> None:
        """Kill the worker. A thread cannot be killed and is abandoned."""

    def join(self, timeout_s: float) -> bool:
        """Wait for the worker to end, and free its resources; returns False if the worker has not ended in time."""


class Errand(AbstractContextManager["Errand"], Protocol):
    """A running command, with the interface of `subprocess.Popen`; leaving the context kills the command."""

    @property
    def returncode(self) -> int | None:
        """Exit status, once `communicate` has returned."""

    def communicate(self, *, timeout: float) -> tuple[bytes, bytes]:
        """Wait for the command, but not for processes that it leaves; return its standard output and standard error.

        On timeout, raises subprocess.TimeoutExpired with the standard error so far; `communicate` may then be called
        again.
        """


class Launcher:
    """Starts workers, each of which calls the entry point with its WorkerOrder and sees the experiment directory.

    Lanes are positions: the devices and the node of a lane are decided when its worker starts. The methods of this
    class suit a launcher that uses only this machine.
    """

    name = ""
    # The flags that make a command start workers in this way, for messages that suggest a next command.
    flags: tuple[str, ...] = ()
    transport: Transport = "ipc"  # of its workers, unless a different one is requested
    needs_tcp = False  # whether its workers may be on other machines
    entry = "workers.process.entry:main"  # of its workers, likewise; a function that is called with the WorkerOrder
    address = "127.0.0.1"  # of this machine, where workers connect to the coordinator over tcp
    nodes: tuple[Node, ...] = ()  # where its workers run; if one is lost, so are its workers; empty: this machine
    child_processes = False  # whether every worker is a child of this process, which a signal can stop or end
    threads = False  # whether its workers are threads of this process, which share a working directory
    imports_torch_once = False  # whether `begin` uses a process that has imported torch, as its workers do
    descriptors: int  # file descriptors that each worker takes in this process, including its connection
    own_descriptors = 0  # file descriptors that the launcher itself takes, however many workers it has

    def __init__(self, entry: str = "", transport: Transport | None = None) -> None:
        """Raises UsageError if the launcher cannot start workers here."""
        self.entry = entry or self.entry
        self.transport = transport or self.transport
        if self.needs_tcp and self.transport != "tcp":
            raise UsageError(
                f"launcher {self.name}: workers on other machines need ",
                SettingName("transport", "tcp"),
                ", which is this launcher's default",
            )
        self._devices: dict[str, Device] = {}

    @property
    def spawned_because(self) -> str:
        """Why each process on this machine imports torch for itself although `imports_torch_once`; "" if none does."""
        return ""

    def begin(self, node: str, module: str, line: bytes) -> Errand:
        """Run one of our modules as a program on a node, as `begin_here` does on this machine."""
        return begin_here(child_command(module), line)

    def use(self, devices: Iterable[Device]) -> None:
        """Use these devices, which the preflight found, for the lanes that name them."""
        self._devices = {device.name: device for device in devices}

    def check_lanes(self, lanes: Sequence[Lane]) -> None:
        """Raise UsageError unless the devices of each lane exist, are of the planned kind and are all on one node."""
        if not self._devices:
            return
        for lane in lanes:
            subject = f"launcher {self.name} on {lane.name}"
            # Without nodes, a lane on the CPU is not bound to a core: this machine shares its cores among all of them.
            bound = [device for device in lane.devices if self.nodes or not device.startswith("cpu:")]
            missing_devices = [device for device in bound if device not in self._devices]
            if missing_devices:
                kind = missing_devices[0].partition(":")[0]
                same_kind = [name for name in self._devices if name.partition(":")[0] == kind]
                span = f"only {same_kind[0]} to {same_kind[-1]}" if same_kind else "nor any other of its kind"
                raise UsageError(
                    f"{subject}: there is no {missing_devices[0]} now, {span}; use as many devices as planned"
                )
            devices = [self._devices[device] for device in lane.devices if device in self._devices]
            for planned_title, device in zip(lane.titles, devices, strict=False):
                if planned_title != device.title:
                    raise UsageError(
                        f"{subject}: {device.name} is {device.title or 'a core'}{_name_node(device)}, but the plan was "
                        f"made for {planned_title or 'a core'}: a run never changes the kind of its devices; continue "
                        "on a machine that has them"
                    )
            if len({device.node for device in devices}) > 1:
                device_words = " and ".join(f"{device.name}{_name_node(device)}" for device in devices)
                raise UsageError(
                    f"{subject}: one run would be on two nodes ({device_words}); choose devices with ",
                    SettingName("devices"),
                )

    def reserve(self, lanes: Sequence[Lane]) -> None:
        """Reserve everything that the workers of these lanes need; if that is impossible, reserve nothing.

        Replaces any earlier reservation. Waits for a limited time, then raises UsageError, which names the missing
        resources. Called before the first start.
        """

    def release(self) -> None:
        """Release the reservation, once no worker is needed any more."""

    def bound(self, order: WorkerOrder) -> WorkerOrder:
        """Return the order with the current devices and node of its lane. Raises OSError while these are unknown."""
        devices = [self._devices[name] for name in order.lane.devices if name in self._devices]
        if not devices:
            return order
        lane = msgspec.structs.replace(order.lane, uuids=tuple(device.uuid for device in devices))
        return msgspec.structs.replace(order, lane=lane, node=devices[0].node)

    def start(self, order: WorkerOrder) -> Worker:
        """Start a worker and return at once; its Hello or its end follows.

        Raises OSError if no worker can start now.
        """
        raise NotImplementedError


def _name_node(device: Device) -> str:
    return f" on {device.node}" if device.node else ""


def begin_here(command: Sequence[str], line: bytes) -> Child:
    """Run `command` with `line` as its input, in the environment that `child_environment` derives from this one."""
    return child_of(command, line, child_environment(os.environ))


class LauncherFactory(Protocol):
    """Type of `LAUNCHER`."""

    def __call__(self, entry: str = ..., transport: Transport = ...) -> Launcher:
        """Make a launcher; additional arguments have the names of the flags that only this launcher has."""

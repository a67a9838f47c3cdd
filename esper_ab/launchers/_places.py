"""Lanes are positions: which devices they are, and on which node, is settled when a worker starts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Device
from esper_ab.contracts.messages import Lane, WorkerOrder
from esper_ab.contracts.own_packages import child_command
from esper_ab.launchers import Errand, Node, begin_here


class LanePlaces:
    """What launchers have in common: the devices that lanes stand for. Without any, a lane is what its plan says."""

    name = ""
    address = "127.0.0.1"
    nodes: tuple[Node, ...] = ()
    flags: tuple[str, ...] = ()
    own_descriptors = 0

    def __init__(self) -> None:
        self._devices: dict[str, Device] = {}

    def use(self, devices: Iterable[Device]) -> None:
        """From now on lanes are bound to these devices, by their names."""
        self._devices = {device.name: device for device in devices}

    def check_lanes(self, lanes: Sequence[Lane]) -> None:
        """UsageError unless each lane's devices are there, of the kind that was planned, and on one node.

        Without nodes, a lane on the CPU is not bound to a core: this machine shares its cores among all of them.
        """
        if not self._devices:
            return
        for lane in lanes:
            where = f"launcher {self.name} on {lane.name}"
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
                        f"{where}: {device.name} is {_kind(device.title)}{_on(device.node)}, and the plan was made for "
                        f"{_kind(planned)}: a run never changes the kind of its devices; go on where there are such"
                    )
            if len({device.node for device in found}) > 1:
                across = " and ".join(f"{device.name}{_on(device.node)}" for device in found)
                raise UsageError(f"{where}: one run would be on two nodes ({across}); choose the devices by --devices")

    def begin(self, node: str, module: str, line: bytes) -> Errand:
        """Run it here: there is no node but this machine."""
        return begin_here(child_command(module), line)

    def reserve(self, lanes: Sequence[Lane]) -> None:
        """Nothing: the devices are this process's."""

    def release(self) -> None: ...

    def bound(self, order: WorkerOrder) -> WorkerOrder:
        """The order with the devices that its lane stands for now, and their node."""
        devices = [self._devices[name] for name in order.lane.devices if name in self._devices]
        if not devices:
            return order
        lane = msgspec.structs.replace(order.lane, uuids=tuple(device.uuid for device in devices))
        return msgspec.structs.replace(order, lane=lane, node=devices[0].node)


def _kind(title: str) -> str:
    return title or "a core"


def _on(node: str) -> str:
    return f" on {node}" if node else ""

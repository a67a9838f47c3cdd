"""Launcher of workers on a cluster of Ray: a supervisor actor per lane, whose child process is the worker.

One placement group holds what all lanes take: Ray gives all of it or nothing, and keeps it for this experiment. A
worker is started by its supervisor, in `_on_node`: the order comes by standard input, whose end is the coordinator's,
the public key by standard output. A supervisor that is lost, with its node or alone, is followed by another one
wherever Ray moves its part of the group; until then a start of its lane's worker is delayed.

GPUs are dealt out by Ray, and bound by their UUIDs as the preflight of their node has them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.messages import Lane, WorkerOrder
from esper_ab.contracts.own_packages import child_command
from esper_ab.launchers import Errand, LauncherFactory, Node, Transport
from esper_ab.launchers._places import LanePlaces
from esper_ab.launchers._ray_cluster import NotYet, RayCluster, SupervisorEnded
from esper_ab.launchers._ray_parts import bundles, check_shares, parts, uuids_of
from esper_ab.launchers._ray_worker import Clerk, LaneSupervisor, RayErrand, RayWorker
from esper_ab.stats.text import counted

DEFAULT_ENTRY = "workers.process.entry:main"
WAIT_S = 600.0  # for room in the cluster
_SAY_S = 10.0  # then it is said who waits
_LOOK_S = 0.5
_ID_CHARACTERS = 8
_BEGIN_S = 300.0  # for supervisors in a group that is there: a process each, on a machine that may be crowded


class RayLauncher(LanePlaces):
    """Starts each worker beside the supervisor of its lane."""

    name = "ray"
    child_processes = False
    descriptors = 8  # an eventfd, a pipe, a connection and the socket it is accepted at, and Ray's to the supervisor

    def __init__(
        self, entry: str = DEFAULT_ENTRY, transport: Transport = "tcp", *, ray_address: str = "",
        ray_label: Mapping[str, str] | None = None, ray_wait: float = WAIT_S,
    ) -> None:  # fmt: skip
        """Connect to the cluster at `ray_address`, or that of RAY_ADDRESS, or start one on this machine.

        The arguments are named as their flags: labels of the nodes that count, and how long to wait for room, seconds.
        UsageError when Ray is not installed, or there is no such cluster.
        """
        super().__init__()
        if transport != "tcp":
            raise UsageError("launcher ray: workers on other machines need --transport tcp, which it takes by itself")
        self._entry, self._wait_s = entry, ray_wait
        self.transport: Transport = transport
        self._cluster = RayCluster(ray_address, ray_label or {})
        self.address = self._cluster.address
        self._names = self._cluster.nodes()
        self.nodes: tuple[Node, ...] = tuple(self._names.values())
        self._group: Any = None
        self._lanes: dict[str, LaneSupervisor] = {}
        self._visible: dict[str, Any] = {}  # node -> which GPUs its preflight sees, as Ray calls them
        self._clerk: Clerk | None = None

    def begin(self, node: str, module: str, line: bytes) -> Errand:
        (number,) = (number for number, one in self._names.items() if one.name == node)
        supervisor = self._cluster.supervisor_on(number)
        self._visible[node] = supervisor.visible.remote()
        return RayErrand(self._cluster, supervisor, node, child_command(module, elsewhere=True), line)

    def check_lanes(self, lanes: Sequence[Lane]) -> None:
        super().check_lanes(lanes)
        check_shares(lanes)

    def reserve(self, lanes: Sequence[Lane]) -> None:
        if self._group is not None and list(self._lanes) == [lane.name for lane in lanes]:
            return
        self.release()
        self._clerk = Clerk()
        self._group = self._cluster.group(bundles(lanes))
        try:
            self._await_group(lanes)
            for name, (place, part) in parts(lanes).items():
                begin = partial(self._cluster.supervisor_in, self._group, place, part)
                self._lanes[name] = LaneSupervisor(self._cluster, self._clerk, begin)
            self._await_supervisors()
        except BaseException:
            self.release()
            raise

    def _await_group(self, lanes: Sequence[Lane]) -> None:
        """Return when Ray has given the group; UsageError, which says what it has, after the limit."""
        began, said = time.monotonic(), False
        who = f"{counted(len(lanes), 'lane')}, {lanes[0].name} to {lanes[-1].name},"
        while not self._group.wait(_LOOK_S):
            waited_s = time.monotonic() - began
            if waited_s > self._wait_s:
                raise UsageError(
                    f"launcher ray: {who} found no room within {self._wait_s:.0f} s, and Ray gives them all or none: "
                    f"{self._cluster.room()}. Wait until others have ended (`ray status`), choose fewer by --devices, "
                    "or wait longer by --ray-wait"
                )
            if waited_s > _SAY_S and not said:
                said = True
                sys.stderr.write(
                    f"warning: {who} wait for room in Ray's cluster, for up to {self._wait_s:.0f} s: "
                    f"{self._cluster.room()}\n"
                )

    def _await_supervisors(self) -> None:
        """Return when every lane has its supervisor; UsageError when one cannot begin."""
        deadline = time.monotonic() + _BEGIN_S
        for name, lane in self._lanes.items():
            try:
                lane.await_place(deadline - time.monotonic())
            except (SupervisorEnded, NotYet, TimeoutError) as error:
                raise UsageError(
                    f"launcher ray on {name}: the process beside the worker did not begin: {error}"
                ) from None

    def release(self) -> None:
        for lane in self._lanes.values():
            lane.end()
        self._lanes = {}
        if self._group is not None:
            self._cluster.remove_group(self._group)
            self._group = None
        if self._clerk is not None:
            self._clerk.close()
            self._clerk = None

    def bound(self, order: WorkerOrder) -> WorkerOrder:
        """OSError (EHOSTUNREACH) while Ray has no node for the lane; UsageError for one that nobody has examined."""
        number, dealt = self._lanes[order.lane.name].place()
        if number not in self._names:
            raise UsageError(
                f"launcher ray on {order.lane.name}: Ray has moved it to node {number[:_ID_CHARACTERS]}, which is new "
                "since the preflight: go on by resume, which examines it"
            )
        node = self._names[number].name
        lane = msgspec.structs.replace(order.lane, uuids=self._uuids(order.lane, node, dealt))
        return msgspec.structs.replace(order, lane=lane, node=node)

    def _uuids(self, lane: Lane, node: str, dealt: Sequence[str]) -> tuple[str, ...]:
        """Of the GPUs that Ray has dealt out there; "" for each core."""
        if lane.devices[0].startswith("cpu:"):
            return ("",) * len(lane.devices)
        there = [device.uuid for device in self._devices.values() if device.node == node and device.uuid]
        found = uuids_of(dealt, self._cluster.answer(self._visible[node], _BEGIN_S), there)
        if len(found) != len(lane.devices):
            raise UsageError(
                f"launcher ray on {lane.name}: Ray has dealt out GPU {', '.join(dealt) or 'none'} on {node}, where the "
                f"preflight has found {', '.join(there) or 'none'}"
            )
        return tuple(found)

    def start(self, order: WorkerOrder) -> RayWorker:
        assert self._clerk is not None, "lanes are reserved before the first start"
        command = child_command("esper_ab.launchers._on_node", self._entry, elsewhere=True)
        return RayWorker(self._cluster, self._clerk, self._lanes[order.lane.name], order, command)


LAUNCHER: LauncherFactory = RayLauncher

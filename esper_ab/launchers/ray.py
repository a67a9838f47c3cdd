"""Launcher of workers on a Ray cluster. Each lane has a supervisor in an actor, whose child process is the worker.

One placement group holds the resources of all lanes: Ray grants all of them or none, and keeps them for this
experiment. A supervisor passes on the WorkerOrder and the public key of its worker. If a supervisor is lost, by itself
or with its node, a new supervisor starts wherever Ray moves that part of the group. Until then, the start of the lane's
worker is delayed.

Ray assigns the GPUs, and they are selected by the UUIDs that the preflight found on their node.
"""

from __future__ import annotations

import atexit
import errno
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from esper_ab.contracts import supervisor
from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.guard import limit_softly
from esper_ab.contracts.own_packages import child_command
from esper_ab.contracts.private_folder import private_folder, remove_private
from esper_ab.contracts.users_shell import OF_A_JOB
from esper_ab.contracts.wording import counted
from esper_ab.contracts.worker_order import Lane, WorkerOrder
from esper_ab.launchers import Errand, Launcher, LauncherFactory, Node, Transport, _ray_actor
from esper_ab.launchers._ray_actor import Actor, ActorEnded, NotYet, RayErrand, RaySupervisor, answer, in_one_line
from esper_ab.launchers._ray_shares import bundles, check_shares, parts, uuids_of
from esper_ab.launchers._supervised import NodeSupervisor, NodeWorker

WAIT_S = 600.0  # default limit on waiting for free resources in the cluster
_SAY_S = 10.0  # after this time, a message says that the launcher waits
_LOOK_S = 0.5
_ID_CHARACTERS = 8
_BEGIN_S = 300.0  # for the supervisors to start once the group is granted: a process each, on a busy machine
_INSTALL = "pip install 'esper-ab[ray]'"
_STORE_BYTES = 80 << 20  # object store of a cluster that is started here: orders and answers are short
_BELOW_CHARS = 35  # added by Ray between the folder and its sockets; more than our own code adds
_AT_ONCE = 16  # concurrent calls of one actor: a read, a write, and earlier tries whose fate Ray does not know
# Defaults for what the user has not set. Ray reads them on import. Without them, Ray would send usage statistics, warn
# about answers that nobody requested, and hide all GPUs from actors that request none.
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


class RayLauncher(Launcher):
    """Starts each worker as a child process of its lane's supervisor."""

    name = "ray"
    descriptors = 8  # an eventfd, a connection and the socket that accepts it, and Ray's to the supervisor

    transport: Transport = "tcp"
    needs_tcp = True

    def __init__(
        self,
        entry: str = "",
        transport: Transport | None = None,
        *,
        ray_address: str = "",
        ray_label: Mapping[str, str] | None = None,
        ray_wait: float = WAIT_S,
    ) -> None:
        """Connect to the cluster at `ray_address` or RAY_ADDRESS, or start one on this machine.

        Each argument has the name of its flag. `ray_label`: the labels that a node must have. `ray_wait`: how many
        seconds to wait for free resources. Raises UsageError if Ray is not installed or there is no such cluster.
        """
        super().__init__(entry, transport)
        self._wait_s = ray_wait
        self._labels = dict(ray_label or {})
        self._ray = _connected(ray_address or os.environ.get("RAY_ADDRESS", ""))
        self.address: str = self._ray.util.get_node_ip_address()
        self._names = self._find_nodes()
        self.nodes: tuple[Node, ...] = tuple(self._names.values())
        self._group: Any = None
        self._lanes: dict[str, _LaneSupervisor] = {}
        self._visible: dict[str, Any] = {}  # node -> GPUs that its preflight sees, by Ray's names

    def _find_nodes(self) -> dict[str, Node]:
        """Return the usable nodes by Ray's node id, sorted by name. Raises UsageError if no node is usable.

        A node is named after its host, with the start of Ray's id if several nodes have the same host.
        """
        living_nodes = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        usable_nodes = [node for node in living_nodes if self._labels.items() <= node.get("Labels", {}).items()]
        if not usable_nodes:
            labels = ", ".join(f"{key}={value}" for key, value in self._labels.items())
            labels_words = f" with {labels}" if labels else ""
            raise UsageError(
                f"launcher ray: no node{labels_words} has a CPU; the cluster has {len(living_nodes)} other nodes with "
                "CPUs"
            )
        hosts = [node["NodeManagerHostname"] for node in usable_nodes]
        nodes_by_number: dict[str, Node] = {}
        for node, host in zip(usable_nodes, hosts, strict=True):
            number = node["NodeID"]
            resources = node["Resources"]
            name = host if hosts.count(host) == 1 else f"{host}/{number[:_ID_CHARACTERS]}"
            nodes_by_number[number] = Node(name=name, cores=int(resources["CPU"]), gpus=int(resources.get("GPU", 0)))
        return dict(sorted(nodes_by_number.items(), key=lambda item: item[1].name))

    def begin(self, node: str, module: str, line: bytes) -> Errand:
        """Run the module in an actor that reserves no resources of the node."""
        number = self._find_id(node)
        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(number, soft=False)
        actor = self._actor(strategy, {})
        self._visible[node] = actor.visible.remote()
        return RayErrand(self._ray, actor, node, child_command(module, elsewhere=True), line)

    def _find_id(self, name: str) -> str:
        """Return Ray's id of the node that is called `name` here."""
        for number, node in self._names.items():
            if node.name == name:
                return number
        raise KeyError(name)

    def _actor(self, strategy: Any, part: Mapping[str, float]) -> Any:
        """Make an actor that reserves `part` of the resources."""
        actor_options = self._ray.remote(Actor).options(
            scheduling_strategy=strategy,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=_AT_ONCE,
            num_cpus=part.get("CPU", 0),
            num_gpus=part.get("GPU", 0),
        )
        return actor_options.remote(str(Path.cwd()))

    def check_lanes(self, lanes: Sequence[Lane]) -> None:
        super().check_lanes(lanes)
        check_shares(lanes)

    def reserve(self, lanes: Sequence[Lane]) -> None:
        if self._group is not None and list(self._lanes) == [lane.name for lane in lanes]:
            return
        self.release()
        selector: dict[str, Any] = {}
        if self._labels:
            selector["bundle_label_selector"] = [self._labels] * len(bundles(lanes))
        self._group = self._ray.util.placement_group(bundles(lanes), strategy="PACK", **selector)
        try:
            self._await_group(lanes)
            for name, (place, part) in parts(lanes).items():
                strategy = self._ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
                    self._group, placement_group_bundle_index=place
                )
                self._lanes[name] = _LaneSupervisor(self._ray, partial(self._actor, strategy, part))
            self._await_supervisors()
        except BaseException:
            self.release()
            raise

    def _await_group(self, lanes: Sequence[Lane]) -> None:
        """Wait until Ray has granted the group.

        After a time limit, raises UsageError, which names the free resources.
        """
        begin_s = time.monotonic()
        has_warned = False
        lanes_words = f"{counted(len(lanes), 'lane')}, {lanes[0].name} to {lanes[-1].name},"
        while not self._group.wait(_LOOK_S):
            waited_s = time.monotonic() - begin_s
            if waited_s > self._wait_s:
                raise UsageError(
                    f"launcher ray: {lanes_words} got no resources within {self._wait_s:.0f} s; Ray grants all or "
                    "none: "
                    f"{self._describe_free()}. Wait for other jobs to end (`ray status`), use fewer ",
                    SettingName("devices"),
                    ", or wait longer with ",
                    SettingName("ray_wait"),
                )
            if waited_s > _SAY_S and not has_warned:
                has_warned = True
                sys.stderr.write(
                    f"warning: {lanes_words} wait for resources in Ray's cluster, up to {self._wait_s:.0f} s: "
                    f"{self._describe_free()}\n"
                )

    def _describe_free(self) -> str:
        """Say how much of the cluster is free."""
        free_resources = self._ray.available_resources()
        total = self._ray.cluster_resources()
        kinds = [kind for kind in ("CPU", "GPU") if total.get(kind)]
        return ", ".join(f"{free_resources.get(kind, 0):.0f} of {total[kind]:.0f} {kind}s are free" for kind in kinds)

    def _await_supervisors(self) -> None:
        """Wait until every lane has its supervisor. Raises UsageError if a supervisor cannot start."""
        deadline = time.monotonic() + _BEGIN_S
        for name, lane in self._lanes.items():
            try:
                lane.await_place(deadline - time.monotonic())
            except (ActorEnded, NotYet, TimeoutError) as error:
                raise UsageError(f"launcher ray on {name}: the worker's supervisor did not start: {error}") from None

    def release(self) -> None:
        for lane in self._lanes.values():
            lane.end()
        self._lanes = {}
        if self._group is not None:
            self._ray.util.remove_placement_group(self._group)
            self._group = None

    def bound(self, order: WorkerOrder) -> WorkerOrder:
        """Same as `Launcher.bound`.

        Raises OSError (EHOSTUNREACH) while Ray has no node for the lane, and UsageError if Ray has moved the lane to a
        node that no preflight has checked.
        """
        number, _, assigned_gpus = self._lanes[order.lane.name].place()
        if number not in self._names:
            raise UsageError(
                f"launcher ray on {order.lane.name}: Ray has moved it to node {number[:_ID_CHARACTERS]}, which no "
                "preflight has checked: resume the experiment, which checks it"
            )
        node = self._names[number].name
        lane = msgspec.structs.replace(order.lane, uuids=self._uuids(order.lane, node, assigned_gpus))
        return msgspec.structs.replace(order, lane=lane, node=node)

    def _uuids(self, lane: Lane, node: str, assigned_gpus: Sequence[str]) -> tuple[str, ...]:
        """Return the UUIDs of the GPUs that Ray has assigned on `node`; for a lane on cores, "" for each core."""
        if lane.devices[0].startswith("cpu:"):
            return ("",) * len(lane.devices)
        present_uuids = [device.uuid for device in self._devices.values() if device.node == node and device.uuid]
        visible_variable = answer(self._ray, self._visible[node], _BEGIN_S)
        uuids = uuids_of(assigned_gpus, visible_variable, present_uuids)
        if len(uuids) != len(lane.devices):
            raise UsageError(
                f"launcher ray on {lane.name}: Ray has assigned GPU {', '.join(assigned_gpus) or 'none'} on {node}, "
                "but the "
                f"preflight found {', '.join(present_uuids) or 'none'} there"
            )
        return tuple(uuids)

    def start(self, order: WorkerOrder) -> NodeWorker:
        return self._lanes[order.lane.name].start(order, self.entry)


class _LaneSupervisor:
    """The current supervisor of a lane, which is replaced when it is gone or fails to end a worker."""

    def __init__(self, ray: Any, begin: Callable[[], Any]) -> None:
        """`begin` makes an actor."""
        self._ray = ray
        self._begin = begin
        self._renew()

    def _renew(self) -> None:
        self._actor = self._begin()
        self._asked = self._actor.place.remote()
        self._supervisor: NodeSupervisor | None = None

    def await_place(self, timeout_s: float) -> tuple[str, int, list[str]]:
        """Return the actor's node, pid and GPUs; raises TimeoutError, ActorEnded, NotYet."""
        place: tuple[str, int, list[str]] = answer(self._ray, self._asked, timeout_s)
        return place

    def place(self) -> tuple[str, int, list[str]]:
        """Same as `await_place`, but without waiting. Raises OSError (EHOSTUNREACH) while there is no actor."""
        if self._supervisor is not None and not self._supervisor.is_reliable:
            self.end()
            self._renew()
        try:
            return self.await_place(0.0)
        except TimeoutError:
            pass
        except NotYet:
            self._asked = self._actor.place.remote()
        except ActorEnded:
            self._renew()
        raise OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))

    def start(self, order: WorkerOrder, entry: str) -> NodeWorker:
        """Start the worker. Raises OSError if no descriptor is free to watch it."""
        if self._supervisor is None:
            _, pid, _ = self.await_place(0.0)
            self._supervisor = NodeSupervisor(order.node, partial(RaySupervisor, self._ray, self._actor, pid))
        return self._supervisor.start(order, entry)

    def end(self) -> None:
        self._ray.kill(self._actor)
        if self._supervisor is not None:
            self._supervisor.dismiss()
            self._supervisor.leave()


def _connected(address: str) -> Any:
    """Return Ray, connected to a cluster. The process has one connection, which an earlier launcher may have made."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        # Imported here, because no other launcher needs Ray, and because Ray reads its settings on import.
        import ray
    except ImportError as error:
        raise UsageError(f"launcher ray needs Ray ({error}): {_INSTALL} on every node") from None
    if not ray.is_initialized():
        _connect(ray, address)
    for module in (_ray_actor, supervisor):
        ray.cloudpickle.register_pickle_by_value(module)
    return ray


def _connect(ray: Any, address: str) -> None:
    if address.startswith("ray://"):
        raise UsageError(
            SettingName("ray_address", address),
            ": workers cannot reach the coordinator through Ray's client; launch on a node of "
            "the cluster (`ray job submit` does), with the address `auto`",
        )
    # Ray prints pages about problems of its nodes to standard output, which belongs to the command, and no setting
    # prevents that. What concerns an experiment is reported in our own words; the rest is in Ray's logs.
    if hasattr(ray._private.worker, "print_to_stdstream"):
        ray._private.worker.print_to_stdstream = lambda *_, **__: None
    folder = private_folder(extra_chars=_BELOW_CHARS) if address in ("", "local") else None
    own_options: dict[str, Any] = {}
    if folder is not None:
        own_options = {"include_dashboard": False, "object_store_memory": _STORE_BYTES, "_temp_dir": str(folder)}
        atexit.register(_end, ray, folder)
    variables_before = dict(os.environ)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        ray.init(address or "local", log_to_driver=False, logging_level="ERROR", **own_options)
    except Exception as error:  # noqa: BLE001  Ray raises all kinds, the base class among them
        cluster_words = f"found at {address}" if address else "could be started on this machine"
        raise UsageError(
            f"launcher ray: no Ray cluster {cluster_words} ({in_one_line(error)}); start one with `ray start` and pass "
            "its address with ",
            SettingName("ray_address"),
        ) from None
    finally:
        _take_back_variables(variables_before)
        limit_softly(resource.RLIMIT_NOFILE, files)  # Ray raises it


def _take_back_variables(variables_before: Mapping[str, str]) -> None:
    """Undo what Ray has set for itself, such as PYTHONBREAKPOINT: users' programs inherit the user's variables."""
    for name in tuple(os.environ):
        if name.startswith(OF_A_JOB):
            continue
        if name not in variables_before:
            del os.environ[name]
        else:
            os.environ[name] = variables_before[name]


def _end(ray: Any, folder: Path) -> None:
    """Shut down a cluster that this process started, and remove its files."""
    ray.shutdown()
    remove_private(folder)


LAUNCHER: LauncherFactory = RayLauncher

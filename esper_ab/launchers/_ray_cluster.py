"""The connection to a cluster of Ray, and what of Ray the launcher uses: nodes, placement groups, actors, answers.

Ray is imported here alone, when a launcher is made.
"""

from __future__ import annotations

import atexit
import errno
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.private_folder import private_folder
from esper_ab.launchers import Node, _supervisor

_INSTALL = "pip install 'esper-ab[ray]'"
_STORE_BYTES = 80 << 20  # of a cluster that is started here: orders and answers are short
_BELOW_CHARS = 35  # of folders that Ray makes for its sockets, more than our own take
_AT_ONCE = 16  # calls of one supervisor: two or three per worker of its lane, of which one is alive
_ID_CHARACTERS = 8
# Unless the user has others. Ray reads them when it is imported. It would report to its makers, warn of answers that
# nobody asked for, and hide GPUs from actors that have none.
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0", "RAY_IGNORE_UNHANDLED_ERRORS": "1", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}  # fmt: skip


class SupervisorEnded(Exception):
    """The actor is gone, alone or with its node; says how."""


class NotYet(Exception):
    """It cannot be said now whether the actor is there."""


class RayCluster:
    """Connected on construction; the process's one connection, which another launcher may have made before."""

    def __init__(self, address: str, labels: Mapping[str, str]) -> None:
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        try:
            import ray
        except ImportError as error:
            raise UsageError(f"launcher ray needs Ray ({error}): {_INSTALL}, on every node alike") from None
        self._ray, self._labels = ray, dict(labels)
        if not ray.is_initialized():
            _connect(ray, address or os.environ.get("RAY_ADDRESS", ""))
        ray.cloudpickle.register_pickle_by_value(_supervisor)
        self.address: str = ray.util.get_node_ip_address()

    def nodes(self) -> dict[str, Node]:
        """The nodes that have cores for us, by Ray's number, in the order of their names; UsageError without any.

        A node is called as its host is, with the beginning of Ray's number where several are called alike.
        """
        alive = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        there = [node for node in alive if self._labels.items() <= node.get("Labels", {}).items()]
        if not there:
            with_labels = f" with {_shown(self._labels)}" if self._labels else ""
            raise UsageError(
                f"launcher ray: no node{with_labels} has a CPU for us; the cluster has {len(alive)} others"
            )
        hosts = [node["NodeManagerHostname"] for node in there]
        named = {
            node["NodeID"]: Node(
                name=host if hosts.count(host) == 1 else f"{host}/{node['NodeID'][:_ID_CHARACTERS]}",
                cores=int(node["Resources"]["CPU"]),
                gpus=int(node["Resources"].get("GPU", 0)),
            )
            for node, host in zip(there, hosts, strict=True)
        }
        return dict(sorted(named.items(), key=lambda item: item[1].name))

    def room(self) -> str:
        """What there is and what of it is free, in words."""
        free, all_ = self._ray.available_resources(), self._ray.cluster_resources()
        kinds = [kind for kind in ("CPU", "GPU") if all_.get(kind)]
        return ", ".join(f"{free.get(kind, 0):.0f} of {all_[kind]:.0f} {kind}s are free" for kind in kinds)

    def group(self, bundles: Sequence[Mapping[str, float]]) -> Any:
        """A placement group of these bundles, all or none of which Ray gives; it waits for it."""
        selector = {"bundle_label_selector": [self._labels] * len(bundles)} if self._labels else {}
        return self._ray.util.placement_group([dict(bundle) for bundle in bundles], strategy="PACK", **selector)

    def remove_group(self, group: Any) -> None:
        self._ray.util.remove_placement_group(group)

    def supervisor_in(self, group: Any, place: int, part: Mapping[str, float]) -> Any:
        """An actor in bundle `place` of the group, of which it takes `part`."""
        where = self._ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
            group, placement_group_bundle_index=place
        )
        return self._supervisor(where, num_cpus=part["CPU"], num_gpus=part.get("GPU", 0))

    def supervisor_on(self, number: str) -> Any:
        """An actor on the node, which takes nothing of it."""
        where = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(number, soft=False)
        return self._supervisor(where, num_cpus=0, num_gpus=0)

    def _supervisor(self, where: Any, **resources: float) -> Any:
        actor = self._ray.remote(_supervisor.Supervisor).options(
            scheduling_strategy=where, max_restarts=0, max_task_retries=0, max_concurrency=_AT_ONCE, **resources
        )
        return actor.remote(str(Path.cwd()))

    def kill(self, supervisor: Any) -> None:
        """End the actor, and with it what it has started; nothing where its node cannot be reached."""
        self._ray.kill(supervisor)

    def answer(self, call: Any, timeout_s: float) -> Any:
        """What a call returned; TimeoutError, SupervisorEnded, NotYet, or what it raised."""
        try:
            return self._ray.get(call, timeout=timeout_s)
        except self._ray.exceptions.GetTimeoutError:
            raise TimeoutError(f"Ray gave no answer within {timeout_s:.0f} s") from None
        except self._ray.exceptions.RayError as error:
            raise self._understood(error) from None

    def when_answered(self, call: Any, told: Callable[[Any, Exception | None], None]) -> None:
        """Have `told` called, on a thread of Ray's, with what the call returned, or None and why there is nothing."""

        def tell(future: Any) -> None:
            error = future.exception()
            told(None if error else future.result(), self._understood(error) if error else None)

        call.future().add_done_callback(tell)

    def _understood(self, error: BaseException) -> Exception:
        kinds = self._ray.exceptions
        if isinstance(error, kinds.ActorUnavailableError):
            return NotYet(_line(error))
        if isinstance(error, kinds.RayTaskError):
            cause = error.cause if isinstance(error.cause, Exception) else error
            return OSError(getattr(cause, "errno", None) or errno.EIO, _line(cause))
        return SupervisorEnded(_line(error))


def _connect(ray: Any, address: str) -> None:
    if address.startswith("ray://"):
        raise UsageError(
            f"--ray-address {address}: workers cannot reach the coordinator through Ray's client; begin on a node of "
            "the cluster, as `ray job submit` does, with the address `auto`"
        )
    _keep_quiet(ray)
    folder = private_folder(below=_BELOW_CHARS) if address in ("", "local") else None
    own: dict[str, Any] = {}
    if folder is not None:
        own = {"include_dashboard": False, "object_store_memory": _STORE_BYTES, "_temp_dir": str(folder)}
        atexit.register(_end, ray, folder)
    try:
        ray.init(address or "local", log_to_driver=False, logging_level="ERROR", **own)
    except Exception as error:  # noqa: BLE001  Ray raises all kinds, the base class among them
        where = f"at {address}" if address else "could be started on this machine"
        raise UsageError(
            f"launcher ray: no cluster of Ray {where} ({_line(error)}); `ray start` begins one, --ray-address names it"
        ) from None


def _end(ray: Any, folder: Path) -> None:
    """Leave neither a process nor a file of a cluster that this process has started."""
    ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


def _keep_quiet(ray: Any) -> None:
    """Ray prints what it finds wrong with its nodes to standard output, pages of it, which is the command's own.

    It has no setting for that. What concerns an experiment shows in its own words, and the rest is in Ray's logs.
    """
    if hasattr(ray._private.worker, "print_to_stdstream"):
        ray._private.worker.print_to_stdstream = lambda *_, **__: None


def _line(error: BaseException) -> str:
    """Its message in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "; ".join(lines[:3]) or type(error).__name__


def _shown(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())

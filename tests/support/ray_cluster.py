"""A Ray of three nodes on this machine: a head without cores for us, and n nodes of two each; a context manager.

The nodes share one kernel, one file system and one address. A raylet is a child of this process: one that is killed
has to be reaped, or the workers of its node take it for alive (`lose`).
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable
from typing import Any

from support.slurm_cluster import free_ports

PATIENCE_S = 120.0
CORES = 2  # that each node claims to have
_STORE_BYTES = 80 << 20
_POLL_S = 0.05
_SETTINGS = {
    # On a crowded machine the defaults of 30 and 60 s are not enough.
    "RAY_raylet_start_wait_time_s": "240", "RAY_gcs_server_request_timeout_seconds": "240",
    "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}  # fmt: skip


def missing() -> str:
    """Why there can be no such cluster here; "" when there can."""
    there = importlib.util.find_spec("ray")  # not imported: that reads its settings
    return "" if there else "Ray is not installed; scripts/test_cluster installs it"


class RayNodes:
    """Running from construction to `close`; this process is connected to none of it."""

    def __init__(self, nodes: int = 3) -> None:
        os.environ.update(_SETTINGS)
        # Here, because Ray is only installed where clusters are tested.
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "object_store_memory": _STORE_BYTES, "include_dashboard": False, **_ports()}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address: str = self._cluster.address
        self.nodes: list[Any] = []
        labels = {"kind": "tested"}
        for _ in range(nodes):
            self.nodes.append(
                self._cluster.add_node(num_cpus=CORES, object_store_memory=_STORE_BYTES, labels=labels, **_ports())
            )

    def __enter__(self) -> RayNodes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def lose(self, number: str) -> None:
        """End the raylet of the node that Ray has numbered so, which its nannies see at once."""
        (node,) = (node for node in self.nodes if node.node_id == number)
        self.nodes.remove(node)
        node.kill_raylet()

    def close(self) -> None:
        self._cluster.shutdown()


def _ports() -> dict[str, int]:
    """Of a node's agents: a raylet waits 15 s for ports that they choose, and no longer (Ray's issue 65983)."""
    names = ("metrics_agent_port", "metrics_export_port", "runtime_env_agent_port", "dashboard_agent_listen_port")
    return dict(zip(names, free_ports(len(names)), strict=True))


def wait(is_so: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + patience_s
    while not is_so():
        assert time.monotonic() < deadline, f"not within {patience_s:.0f} s"
        time.sleep(_POLL_S)

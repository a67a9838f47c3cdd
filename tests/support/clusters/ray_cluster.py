"""A Ray cluster on this machine: a head node without cores and worker nodes with two cores each; a context manager.

The nodes share one kernel, one file system and one address. Raylets are children of this process, so `lose` reaps the
raylet that it kills; to the workers of its node, a zombie would look alive.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any

CORES = 2  # that each node reports
_STORE_BYTES = 80 << 20
_TRIES = 4  # to start a node
_SETTINGS = {
    "RAY_raylet_start_wait_time_s": "60",  # for one try
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def missing() -> str:
    """Return why the cluster cannot run here, or ""."""
    spec = importlib.util.find_spec("ray")  # not imported: that reads its settings
    return "" if spec else "Ray is not installed; scripts/test_cluster installs it"


class RayNodes:
    """A cluster that runs from construction to `close`; this process does not connect to it."""

    def __init__(self, nodes: int = 3) -> None:
        os.environ.update(_SETTINGS)
        # Here, because Ray is only installed where clusters are tested.
        from ray.cluster_utils import Cluster

        self._cluster = Cluster()
        self._add(num_cpus=0, include_dashboard=False)
        self.address: str = self._cluster.address
        self.nodes = [self._add(num_cpus=CORES, labels={"kind": "tested"}) for _ in range(nodes)]

    def __enter__(self) -> RayNodes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, **options: Any) -> Any:
        """Add a node, with retries: on a busy machine a raylet exits if its agent needs more than Ray's fixed 15 s."""
        for tries_left in reversed(range(_TRIES)):
            try:
                return self._cluster.add_node(object_store_memory=_STORE_BYTES, **options)
            except Exception as error:
                if not tries_left or "timed out during startup" not in str(error):
                    raise
        raise AssertionError("one of the tries has returned or raised")

    def lose(self, number: str) -> None:
        """Kill the raylet of the node with this Ray id; its supervisors notice at once."""
        (node,) = (node for node in self.nodes if node.node_id == number)
        self.nodes.remove(node)
        node.kill_raylet()

    def close(self) -> None:
        self._cluster.shutdown()

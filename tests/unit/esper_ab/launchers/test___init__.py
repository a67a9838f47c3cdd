"""A lane is bound to devices of the planned kind on one node; other lanes are refused."""

import pytest
from support.plans.worker_orders import order

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Device
from esper_ab.contracts.worker_order import Lane
from esper_ab.launchers import Node
from esper_ab.launchers.local import LocalLauncher


def lane(*devices):
    titles = tuple("H200" if name.startswith("cuda") else "" for name in devices)
    return Lane(name="+".join(devices), devices=devices, uuids=("GPU-then",) * len(devices), titles=titles)


def launcher(kind, title, *nodes):
    """Return a local launcher that uses one device of this kind on each of these nodes."""
    local_launcher = LocalLauncher()
    local_launcher.use(
        [
            Device(name=f"{kind}:{place}", title=title, uuid=f"GPU-now-{place}", memory_bytes=1, node=node)
            for place, node in enumerate(nodes)
        ]
    )
    return local_launcher


def test_a_lane_is_bound_to_the_devices_of_its_node():
    local_launcher = launcher("cuda", "H200", "n1", "n2", "n2")
    local_launcher.check_lanes([lane("cuda:0"), lane("cuda:1", "cuda:2")])
    bound = local_launcher.bound(order(lane=lane("cuda:1", "cuda:2")))
    assert (bound.node, bound.lane.uuids) == ("n2", ("GPU-now-1", "GPU-now-2"))
    assert bound.lane.name == "cuda:1+cuda:2"


def test_a_launcher_without_devices_keeps_the_planned_lane():
    local_launcher = LocalLauncher()
    local_launcher.check_lanes([lane("cuda:7")])
    assert local_launcher.bound(order(lane=lane("cuda:7"))) == order(lane=lane("cuda:7"))


def test_cpu_lanes_cannot_exceed_the_cores_of_cluster_nodes():
    local_launcher = launcher("cpu", "", "n1", "n2")
    three_lanes = [lane(f"cpu:{place}") for place in range(3)]
    local_launcher.check_lanes(three_lanes)
    local_launcher.nodes = (Node(name="n1", cores=1), Node(name="n2", cores=1))
    with pytest.raises(UsageError, match=r"on cpu:2: there is no cpu:2 now, only cpu:0 to cpu:1; use as many"):
        local_launcher.check_lanes(three_lanes)
    with pytest.raises(UsageError, match=r"on cuda:0: there is no cuda:0 now, nor any other of its kind"):
        local_launcher.check_lanes([lane("cuda:0")])

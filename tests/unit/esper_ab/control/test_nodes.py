"""The preflight of every node of a launcher, and the devices of all nodes as one pool."""

import re
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plans import fake_plans

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Device, Kernel, Questions
from esper_ab.control.nodes import check_alike, examine_nodes, offered, pool
from esper_ab.launchers import Launcher, Node
from esper_ab.launchers.local import LocalLauncher


def machine(cores=2, gpus=0, **facts):
    cpu_machine = fake_plans.machine(cores)
    names = [f"cuda:{i}" for i in range(gpus)]
    cards = [Device(name=name, title="H200", uuid=name, memory_bytes=1, capability="9.0") for name in names]
    return msgspec.structs.replace(cpu_machine, devices=(*cards, *cpu_machine.devices), **facts)


SEEN_AND_OFFERED = st.tuples(st.integers(0, 4), st.integers(1, 4), st.none() | st.integers(0, 4), st.integers(1, 4))


@given(st.lists(SEEN_AND_OFFERED, min_size=1, max_size=5))
def test_the_devices_of_a_pool_are_numbered_node_by_node(sizes):
    nodes = [Node(name=f"n{i}", cores=cores, gpus=gpus) for i, (*_, gpus, cores) in enumerate(sizes)]
    machines = [machine(cores, gpus) for gpus, cores, *_ in sizes]
    devices = pool(nodes, [offered(node, facts) for node, facts in zip(nodes, machines, strict=True)])
    assert len({device.name for device in devices}) == len(devices)
    gpus = [seen_gpus if own_gpus is None else min(seen_gpus, own_gpus) for seen_gpus, _, own_gpus, _ in sizes]
    for kind, counts in (("cuda", gpus), ("cpu", [min(seen_gpus, own_gpus) for _, seen_gpus, _, own_gpus in sizes])):
        devices_of_kind = [device for device in devices if device.name.startswith(kind)]
        assert [device.name for device in devices_of_kind] == [f"{kind}:{i}" for i in range(sum(counts))]
        assert [device.node for device in devices_of_kind] == [
            f"n{i}" for i, count in enumerate(counts) for _ in range(count)
        ]


@pytest.mark.parametrize(
    ("other_machine", "text"),
    [
        (machine(torch_version="2.7"), "torch is 2.7 on node n2 but none on n1"),
        (machine(sources="b"), "the state of esper_ab's code is b on node n2 but none on n1"),
        (machine(kernels=(Kernel(name="native-avx2", build="g"),)), "the native kernel is native-avx2 g on node n2"),
        (machine(gpus=1), r"node n2 has H200 \(9.0\), n1 has no GPU: an experiment trains on one kind of GPU"),
    ],
)
def test_the_refusal_of_a_node_with_other_software_names_the_node(other_machine, text):
    with pytest.raises(UsageError, match=text):
        check_alike({"n1": machine(), "n2": other_machine})
    check_alike({"n1": other_machine, "n2": other_machine, "n3": other_machine})


def test_the_pool_of_a_launcher_without_nodes_is_the_local_machine(tmp_path):
    only_machine = machine()
    questions = Questions(task="digits", data_dir="", user_rewards=())
    assert examine_nodes(only_machine, questions, LocalLauncher(), tmp_path) is only_machine
    assert list(tmp_path.iterdir()) == []


class FinishedErrand(AbstractContextManager):
    """A finished errand of a stand-in node."""

    returncode = 0

    def __init__(self, facts):
        self._facts = facts

    def communicate(self, *, timeout):
        return msgspec.json.encode(self._facts), b""

    def __exit__(self, *_): ...


class NodeLauncher(Launcher):
    """A launcher of stand-in nodes; all but `blind` see the files of this machine."""

    name = "nodes"
    nodes = tuple(Node(name=f"n{i}", cores=2) for i in (1, 2, 3))

    def __init__(self, blind_node=""):
        super().__init__()
        self._blind = blind_node
        self.asked = {}

    def begin(self, node, module, line):
        self.asked[node] = questions = msgspec.json.decode(line, type=Questions)
        is_seen = node != self._blind and Path(questions.shared_file).is_file()
        return FinishedErrand(machine(sees_shared_file=is_seen))


@pytest.mark.parametrize("is_folder", [True, False])
def test_the_refusal_of_a_node_without_the_folder_names_the_node(tmp_path, is_folder):
    """Without an experiment directory, the nodes must see its nearest existing parent."""
    folder = tmp_path / "experiments" / "mine"
    if is_folder:
        folder.mkdir(parents=True)
    checked_folder = folder if is_folder else tmp_path
    questions = Questions(task="digits", data_dir="", user_rewards=("own.py:reward",))
    line = f"node n2: it does not see {checked_folder}: all nodes must see this folder at the same path"
    with pytest.raises(UsageError, match=f"^{re.escape(line)}$"):
        examine_nodes(machine(), questions, NodeLauncher(blind_node="n2"), folder)
    seeing_launcher = NodeLauncher()
    pooled_machine = examine_nodes(machine(), questions, seeing_launcher, folder)
    assert [device.node for device in pooled_machine.devices] == ["n1", "n1", "n2", "n2", "n3", "n3"]
    assert {questions_of_node.user_rewards for questions_of_node in seeing_launcher.asked.values()} == {
        questions.user_rewards
    }
    assert list(checked_folder.iterdir()) == [], "the check leaves no file"

"""The preflight of every node on which a launcher starts workers, and the devices of all nodes as one pool.

A device's name is its place in the pool: "cuda:5" is the sixth GPU, counting node after node. Its node is determined
anew whenever an experiment begins or continues; the plan has only the place and the kind.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec

from esper_ab.contracts.errors import EsperError, SettingName, UsageError
from esper_ab.contracts.machine import Device, Machine, Questions
from esper_ab.contracts.marked_settings import in_every_door
from esper_ab.control.preflight import examine
from esper_ab.launchers import Launcher, Node

_AT_ONCE = 64  # nodes that are asked in parallel


def examine_nodes(machine: Machine, questions: Questions, launcher: Launcher, shared_folder: Path) -> Machine:
    """Return `machine` with the devices of all nodes of `launcher`; unchanged if there are no nodes.

    Raises UsageError with the name of the first node that differs, fails the preflight or does not see the folder
    `shared_folder`.
    """
    if not launcher.nodes:
        return machine
    machines: dict[str, Machine] = {}  # by node
    unusable_gpus = []
    for name, answer in ask_nodes(questions, launcher, shared_folder).items():
        if isinstance(answer, EsperError):
            raise answer
        if problem := unfit(answer, shared_folder):
            raise UsageError(f"node {name}: {problem}")
        machines[name] = answer
        if answer.unusable_gpus:
            unusable_gpus.append(f"{name}: {answer.unusable_gpus}")
    check_alike(machines)
    return msgspec.structs.replace(
        machine,
        devices=pool(launcher.nodes, list(machines.values())),
        gpu_problem="",
        unusable_gpus="; ".join(unusable_gpus),
    )


def ask_nodes(questions: Questions, launcher: Launcher, shared_folder: Path) -> dict[str, Machine | EsperError]:
    """Ask all nodes of `launcher`; return each node's answer or error, by node name."""
    gpus: tuple[str, ...] = ()
    if any(name.startswith("cuda") for name in questions.gpus):  # which is a place in the whole pool
        gpus = ("cuda",)
    node_questions = msgspec.structs.replace(questions, trainer=None, trainer_outcome=None, gpus=gpus)
    with (
        tempfile.NamedTemporaryFile(prefix=".seen-by-all-nodes-", dir=_existing(shared_folder)) as shared_file,
        ThreadPoolExecutor(_AT_ONCE) as executor,
    ):
        node_questions = msgspec.structs.replace(node_questions, shared_file=shared_file.name)
        answers = list(executor.map(partial(_examine_node, node_questions, launcher), launcher.nodes))
    return {node.name: answer for node, answer in zip(launcher.nodes, answers, strict=True)}


def _examine_node(questions: Questions, launcher: Launcher, node: Node) -> Machine | EsperError:
    try:
        return offered(node, examine(questions, begin_on=partial(launcher.begin, node.name), node=node.name))
    except EsperError as error:
        return error


def unfit(machine: Machine, shared_folder: Path) -> str:
    """Return why the node described by `machine` cannot run a worker; "" if it can."""
    if not machine.sees_shared_file:
        return f"it does not see {_existing(shared_folder)}: all nodes must see this folder at the same path"
    return machine.task_problem or machine.gpu_problem


def _existing(folder: Path) -> Path:
    """Return `folder` if it exists, else its nearest parent that does."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())


def check_alike(machines: Mapping[str, Machine]) -> None:
    """Raise UsageError with the first difference if the nodes, by name, do not all compute alike."""
    for difference in differences(machines):
        raise UsageError(difference)


def differences(machines: Mapping[str, Machine]) -> Iterator[str]:
    """Yield one sentence per way in which a node differs from the first one."""
    first_node, *other_nodes = machines
    expected = _common_facts(machines[first_node])
    expected_gpus = kinds(machines[first_node].devices)
    for name in other_nodes:
        for words, fact in _common_facts(machines[name]).items():
            if fact != expected[words]:
                yield (
                    f"{words} is {fact} on node {name} but {expected[words]} on {first_node}: it must be the same on "
                    "all "
                    "nodes"
                )
        gpus = kinds(machines[name].devices)
        if gpus != expected_gpus:
            yield (
                f"node {name} has {gpus}, {first_node} has {expected_gpus}: an experiment trains on one kind of GPU; "
                f"request nodes of one kind (`sbatch --constraint`, {in_every_door(SettingName('ray_label'))})"
            )


def _common_facts(machine: Machine) -> dict[str, str]:
    """Return as text what must be equal on all nodes, in words for the person who has to fix it."""
    kernels = ", ".join(f"{kernel.name} {kernel.build or 'unusable'}" for kernel in machine.kernels)
    return {
        "torch": machine.torch_version or "none",
        "torch's build for CUDA": machine.cuda_build or "none",
        "the state of esper_ab's code": machine.sources or "none",
        "the processor's bfloat16 instructions": machine.cpu_bf16 or "none",
        "the native kernel": kernels or "missing",
    }


def kinds(devices: Iterable[Device]) -> str:
    """Return the kinds of GPU among `devices` as text."""
    gpus = {f"{device.title} ({device.capability})" for device in devices if _has_kind("cuda", device)}
    return ", ".join(sorted(gpus)) or "no GPU"


def pool(nodes: Sequence[Node], machines: Sequence[Machine]) -> tuple[Device, ...]:
    """Return the GPUs of all nodes, then their cores, numbered consecutively node by node."""
    return (*_number("cuda", nodes, machines), *_number("cpu", nodes, machines))


def _number(kind: str, nodes: Sequence[Node], machines: Sequence[Machine]) -> list[Device]:
    """Return the devices of a kind on all nodes, with their names in the pool."""
    devices: list[Device] = []
    for node, machine in zip(nodes, machines, strict=True):
        for device in machine.devices:
            if _has_kind(kind, device):
                devices.append(msgspec.structs.replace(device, name=f"{kind}:{len(devices)}", node=node.name))
    return devices


def offered(node: Node, machine: Machine) -> Machine:
    """Return `machine` with only as many of its first GPUs and cores as may be used on `node`."""
    gpus = [device for device in machine.devices if _has_kind("cuda", device)]
    cores = [device for device in machine.devices if _has_kind("cpu", device)]
    return msgspec.structs.replace(machine, devices=(*gpus[: node.gpus], *cores[: node.cores]))


def _has_kind(kind: str, device: Device) -> bool:
    return device.name.startswith(f"{kind}:")

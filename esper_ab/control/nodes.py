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

from esper_ab.contracts.errors import EsperError, UsageError
from esper_ab.contracts.machine import Device, Machine, Questions
from esper_ab.control.preflight import examine
from esper_ab.launchers import Launcher, Node

_AT_ONCE = 64  # nodes that are asked in parallel
# What must be equal on all nodes, in words for the person who has to fix it.
_COMMON = {
    "torch_version": "torch",
    "cuda_build": "torch's build for CUDA",
    "sources": "the state of esper_ab's code",
    "cpu_bf16": "the processor's bfloat16 instructions",
    "kernels": "the native kernel",
}


def examine_nodes(machine: Machine, questions: Questions, launcher: Launcher, shared: Path) -> Machine:
    """Return `machine` with the devices of all nodes of `launcher`; unchanged if there are no nodes.

    Raises UsageError with the name of the first node that differs, fails the preflight or does not see the folder
    `shared`.
    """
    if not launcher.nodes:
        return machine
    found: dict[str, Machine] = {}
    for name, there in ask_nodes(questions, launcher, shared).items():
        if isinstance(there, EsperError):
            raise there
        if problem := unfit(there, shared):
            raise UsageError(f"node {name}: {problem}")
        found[name] = there
    check_alike(found)
    return msgspec.structs.replace(
        machine,
        devices=pool(launcher.nodes, list(found.values())),
        gpu_problem="",
        unusable_gpus="; ".join(f"{node}: {one.unusable_gpus}" for node, one in found.items() if one.unusable_gpus),
    )


def ask_nodes(questions: Questions, launcher: Launcher, shared: Path) -> dict[str, Machine | EsperError]:
    """Ask all nodes of `launcher`; return each node's answer or error, by node name."""
    of_node = msgspec.structs.replace(
        questions,
        trainer=None,
        trainer_outcome=None,
        gpus=("cuda",) * any(name.startswith("cuda") for name in questions.gpus),  # a name is a place in the whole pool
    )
    with (
        tempfile.NamedTemporaryFile(prefix=".seen-by-all-nodes-", dir=_existing(shared)) as seen,
        ThreadPoolExecutor(_AT_ONCE) as asking,
    ):
        of_node = msgspec.structs.replace(of_node, shared_file=seen.name)
        answers = list(asking.map(partial(_examine_on, of_node, launcher), launcher.nodes))
    return {node.name: there for node, there in zip(launcher.nodes, answers, strict=True)}


def _examine_on(questions: Questions, launcher: Launcher, node: Node) -> Machine | EsperError:
    try:
        return offered(node, examine(questions, on=partial(launcher.begin, node.name), node=node.name))
    except EsperError as error:
        return error


def unfit(machine: Machine, shared: Path) -> str:
    """Return why the node described by `machine` cannot run a worker; "" if it can."""
    if not machine.sees_shared_file:
        return f"it does not see {_existing(shared)}: all nodes must see this folder at the same path"
    return machine.task_problem or machine.gpu_problem


def _existing(folder: Path) -> Path:
    """Return `folder` if it exists, else its nearest parent that does."""
    return next(one for one in (folder.absolute(), *folder.absolute().parents) if one.is_dir())


def check_alike(found: Mapping[str, Machine]) -> None:
    """Raise UsageError with the first difference if the nodes do not all compute alike."""
    for difference in differences(found):
        raise UsageError(difference)


def differences(found: Mapping[str, Machine]) -> Iterator[str]:
    """Yield one sentence per way in which a node differs from the first one."""
    names = list(found)
    for name in names[1:]:
        for key, words in _COMMON.items():
            first, there = (_shown(getattr(found[node], key)) for node in (names[0], name))
            if first != there:
                yield f"{words} is {there} on node {name} but {first} on {names[0]}: it must be the same on all nodes"
        first, there = (kinds(found[node].devices) for node in (names[0], name))
        if there != first:
            yield (
                f"node {name} has {there}, {names[0]} has {first}: an experiment trains on one kind of GPU; request "
                "nodes of one kind (sbatch --constraint, --ray-label)"
            )


def _shown(value: object) -> str:
    """Format a fact about a node as text, for comparison and for messages."""
    if isinstance(value, tuple):
        return ", ".join(f"{kernel.name} {kernel.build or 'unusable'}" for kernel in value) or "missing"
    return str(value) or "none"


def kinds(devices: Iterable[Device]) -> str:
    """Return the kinds of GPU among `devices` as text."""
    found = sorted({f"{device.title} ({device.capability})" for device in devices if device.name.startswith("cuda:")})
    return ", ".join(found) or "no GPU"


def pool(nodes: Sequence[Node], found: Sequence[Machine]) -> tuple[Device, ...]:
    """Return the GPUs of all nodes, then their cores, numbered consecutively node by node."""
    there = [(node, device) for node, machine in zip(nodes, found, strict=True) for device in machine.devices]
    return tuple(
        msgspec.structs.replace(device, name=f"{kind}:{place}", node=node.name)
        for kind in ("cuda", "cpu")
        for place, (node, device) in enumerate(one for one in there if _is(kind, one[1]))
    )


def offered(node: Node, machine: Machine) -> Machine:
    """Return `machine` with only as many of its first GPUs and cores as may be used on `node`."""
    gpus = [device for device in machine.devices if _is("cuda", device)]
    cores = [device for device in machine.devices if _is("cpu", device)]
    return msgspec.structs.replace(machine, devices=(*gpus[: node.gpus], *cores[: node.cores]))


def _is(kind: str, device: Device) -> bool:
    return device.name.startswith(f"{kind}:")

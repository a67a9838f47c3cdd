"""Checks before an experiment starts: of its directory, and of every machine.

Each machine is checked by a child process, which imports torch.
"""

from __future__ import annotations

import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from esper_ab.contracts.children import DOING, Device, Machine, Questions
from esper_ab.contracts.errors import EsperError, Setting, UsageError, WorkerHung
from esper_ab.contracts.files import UNREADABLE
from esper_ab.contracts.messages import Lane
from esper_ab.contracts.own_packages import child_command
from esper_ab.contracts.settings import expected_instead
from esper_ab.contracts.trainer import is_command
from esper_ab.contracts.wording import end_told, typeable, visible_line
from esper_ab.control import descriptors
from esper_ab.control.descriptors import crowding
from esper_ab.launchers import Errand, Launcher, Node, begin_here

# --- preflight -------------------------------------------------------------------------------------------------------
# Checks before anything starts: of the directory, and of the machine by a child process that imports torch.


LIMIT_S = 120.0  # on an idle machine; importing torch from a cold network disk takes tens of seconds
_MODULE = "workers.commands.describe"
_SAY_S = 10.0  # after this time, the user is told what the preflight is doing
_SAY_AGAIN_S = 30.0
_LOOK_S = 0.5
_LOG_BYTES_PER_ENV_EPISODE = 4096  # journal line and log, measured generously
_SPARE_BYTES = 64 << 20  # policies, report, and room for others
_decode_machine = msgspec.json.Decoder(Machine).decode


def examine(
    questions: Questions, meanwhile: Callable[[], None] = lambda: None, limit_s: float = LIMIT_S, *,
    on: Callable[[str, bytes], Errand] | None = None, node: str = "",
) -> Machine:  # fmt: skip
    """Run the preflight and return its answers.

    Raises UsageError if the preflight was ended by the user's code or in a limited address space, and EsperError if it
    was ended by anything else.

    `meanwhile` is called while the child imports torch, which takes a second or more. `limit_s`: time limit on an idle
    machine, to be multiplied by the crowding; WorkerHung is raised when the time is up. The rehearsal of a user's own
    trainer has no limit. `on`: starts the preflight on `node` instead of on this machine.
    """
    asked = msgspec.json.encode(questions) + b"\n"
    what = f"the preflight on node {node} ({_MODULE})" if node else f"the preflight ({_MODULE})"
    began = time.monotonic()
    with on(_MODULE, asked) if on else begin_here(child_command(_MODULE), asked) as child:
        meanwhile()
        answer, complaint = _awaited(child, began, limit_s if questions.trainer is None else math.inf)
    try:
        return _decode_machine(answer)  # a valid answer counts, whatever users' code printed or did at exit
    except UNREADABLE as error:
        why = error
    told = complaint.decode(errors="replace").splitlines()
    said = [line for line in told if line.strip() and not line.startswith(DOING)]
    ended, doing = visible_line(end_told(child.returncode or 0, said)), _last_doing(told)
    own = [*questions.user_rewards, questions.trainer.reference if questions.trainer else questions.task]
    if any(reference in doing for reference in own if ":" in reference or questions.trainer):
        raise UsageError(f"your code ended the preflight, which was {doing}: the process {ended}")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if not node and limit != resource.RLIM_INFINITY:
        small = f"with an address space of {limit >> 20} MiB"
        raise UsageError(f"{what} gave no answer: {small} it {ended}; raise `ulimit -v`")
    raise EsperError(f"{what} gave no answer ({why}): it {ended}")


def examine_here(questions: Questions, launcher: Launcher, meanwhile: Callable[[], None] = lambda: None) -> Machine:
    """Run the preflight on this machine, in the way in which `launcher` starts workers. Raises as `examine` does.

    Workers that only guard a command need no torch, so for them only the preflight imports it, in its own process.
    """
    guards = questions.trainer is not None and is_command(questions.trainer.reference)
    if guards or not launcher.imports_torch_once:
        return examine(questions, meanwhile)
    machine = examine(questions, meanwhile, on=partial(launcher.begin, ""))
    return msgspec.structs.replace(machine, spawned_because=launcher.spawned_because)


def _awaited(child: Errand, began: float, limit_s: float) -> tuple[bytes, bytes]:
    """Return the preflight's stdout and stderr; after the limit, raise WorkerHung with the last step."""
    say_at, longest_s = _SAY_S, limit_s
    while True:
        try:
            return child.communicate(timeout=_LOOK_S)
        except subprocess.TimeoutExpired as error:
            told = (error.stderr or b"").decode(errors="replace").splitlines()
        waited_s, longest_s = time.monotonic() - began, max(longest_s, limit_s * crowding())
        if waited_s > longest_s:
            raise WorkerHung(f"the preflight gave no answer within {longest_s:.0f} s; it was still {_last_doing(told)}")
        if waited_s > say_at:
            limit = "" if longest_s == math.inf else f", of at most {longest_s:.0f} s"
            _warn(f"before the start: {_last_doing(told)}; {waited_s:.0f} s so far{limit}")
            say_at += _SAY_AGAIN_S


def _last_doing(told: Sequence[str]) -> str:
    """Return the last step that the preflight announced on its standard error."""
    last = next((line for line in reversed(told) if line.startswith(DOING)), f"{DOING}importing torch")
    return visible_line(last.removeprefix(DOING))


def _warn(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(typeable(f"{text}\n"))


def expected_bytes(env_episodes: int) -> int:
    """Return how many bytes an experiment directory may need."""
    return _SPARE_BYTES + env_episodes * _LOG_BYTES_PER_ENV_EPISODE


def check_experiment_dir(experiment_dir: Path, needed_bytes: int, *, taken_over: bool = False) -> None:
    """Raise UsageError unless `experiment_dir` is new (or `taken_over`), can be created and has room. Creates nothing.
    """
    if expected := expected_instead(str(experiment_dir)):
        what = f"cannot create {str(experiment_dir)!r}"
        raise UsageError(f"{what}: expected {expected}; choose another with ", Setting("output_dir"))
    if experiment_dir.exists() and not taken_over:
        raise UsageError(
            f"{experiment_dir} exists already; choose another with ", Setting("name"), " or ", Setting("output_dir")
        )
    parent = next(folder for folder in experiment_dir.absolute().parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise UsageError(f"cannot create {experiment_dir}: {parent} is not a writable folder; choose another")
    free_bytes = shutil.disk_usage(parent).free
    if free_bytes < needed_bytes:
        room = f"{free_bytes >> 20} MiB free, but the run may need {needed_bytes >> 20} MiB"
        raise UsageError(f"{parent} has {room}; free some space or choose another folder")


def check_launcher(launcher: Launcher, lanes: Sequence[Lane], devices: Sequence[Device] = ()) -> None:
    """Raise UsageError unless `launcher` can serve the lanes and this process may open enough descriptors.

    `devices`: the devices that the lanes now refer to; by default, the devices with which the plan was made.
    """
    if not hasattr(os, "pidfd_open"):
        raise UsageError(
            f"training needs Linux (epoll, eventfd and pidfd_open), but this is {sys.platform}; comparing, judging, "
            "planning and reporting work here"
        )
    launcher.use(devices)
    launcher.check_lanes(lanes)
    descriptors.check(len(lanes), launcher.descriptors, launcher.own_descriptors)


def reserve_lanes(launcher: Launcher, lanes: Sequence[Lane], devices: Sequence[Device] = ()) -> None:
    """Run `check_launcher`, then reserve the resources of the lanes. Raises UsageError if some are not available."""
    check_launcher(launcher, lanes, devices)
    launcher.reserve(lanes)


# --- nodes -----------------------------------------------------------------------------------------------------------
# The preflight of every node on which a launcher starts workers, and the devices of all nodes as one pool.
#
# A device's name is its place in the pool: "cuda:5" is the sixth GPU, counting node after node. Its node is determined
# anew whenever an experiment begins or continues; the plan has only the place and the kind.


_AT_ONCE = 64  # nodes that are asked in parallel
# What must be equal on all nodes, in words for the person who has to fix it.
_COMMON = {
    "torch_version": "torch", "cuda_build": "torch's build for CUDA", "sources": "the state of esper_ab's code",
    "cpu_bf16": "the processor's bfloat16 instructions", "kernels": "the native kernel",
}  # fmt: skip


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
        machine, devices=pool(launcher.nodes, list(found.values())), gpu_problem="",
        unusable_gpus="; ".join(f"{node}: {one.unusable_gpus}" for node, one in found.items() if one.unusable_gpus),
    )  # fmt: skip


def ask_nodes(questions: Questions, launcher: Launcher, shared: Path) -> dict[str, Machine | EsperError]:
    """Ask all nodes of `launcher`; return each node's answer or error, by node name."""
    of_node = msgspec.structs.replace(
        questions, trainer=None, trainer_outcome=None,
        gpus=("cuda",) * any(name.startswith("cuda") for name in questions.gpus),  # a name is a place in the whole pool
    )  # fmt: skip
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

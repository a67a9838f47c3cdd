"""Where the runs of a plan train, in words: devices, unused GPUs, and environments per device. Pure."""

from __future__ import annotations

from collections import Counter

from esper_ab.contracts.machine import Machine
from esper_ab.contracts.wording import counted, listed
from esper_ab.plan.plan import Plan
from esper_ab.settings.kinds import kind_of

_GPUS_NAMED = 4  # at most; more are counted


def runs_at_once(plan: Plan) -> int:
    """Return how many runs of a plan train at the same time."""
    n_groups = len(plan.experiment.groups)
    in_turn = plan.experiment.takes_turns  # the runs of a seed take turns on one device
    return min(n_groups * plan.experiment.seeds, len(plan.lanes) // (n_groups if in_turn else 1))


def where(plan: Plan, machine: Machine) -> str:
    """Say where the runs train: "on cuda:0 and cuda:1", "on 8 GPUs", "on 2 CPU cores", "sharing cuda:0"."""
    gpus = [name for name in _used(plan) if not name.startswith("cpu:")]
    lanes_on_cores = len(_used(plan)) - len(gpus)
    cores = min(lanes_on_cores, len(machine.names("cpu")))  # a machine with few cores has more lanes than cores
    share = runs_at_once(plan) * plan.experiment.devices_per_run > len(gpus) + cores
    named = [counted(len(gpus), "GPU")] if len(gpus) > _GPUS_NAMED else gpus
    on_cores = [counted(cores, "CPU core")] if cores else []
    return f"{'sharing' if share else 'on'} {listed([*named, *on_cores])}"


def unused_gpus(plan: Plan, machine: Machine) -> str:
    """Count the GPUs that no run uses, with the flag or the reason: "2 GPUs unused (--devices cuda)"; "" if none."""
    used = _used(plan)
    pool = plan.experiment.devices
    unused = [name for name in machine.names("cuda") if name not in used]
    if not unused:
        return ""
    said = f"{counted(len(unused), 'GPU')} unused"
    kind = kind_of(plan.experiment.task)
    if kind.on_cores:
        return f"{said} ({kind.words} run on the CPU)"
    if any(name not in pool for name in unused):
        return f"{said} (--devices cuda)"
    return said


def environments_per_device(plan: Plan) -> str:
    """Count the environments that train on each device at the same time: "cuda:0: 8 environments, cuda:1: 8".

    Return "" for a trainer of the user's own, whose environments nobody knows.
    """
    if plan.experiment.trainer:
        return ""
    of_lane = {run.ref.device: Counter(run.env_devices) for block in plan.blocks for run in block.runs}
    total = Counter[str]()
    for lane in plan.lanes:
        counts = of_lane.get(lane.name, Counter())
        total = total | counts if plan.experiment.takes_turns else total + counts
    (first, count), *more = sorted(total.items(), key=lambda one: _used(plan).index(one[0]))
    return ", ".join([f"{first}: {counted(count, 'environment')}", *(f"{device}: {n}" for device, n in more)])


def _used(plan: Plan) -> list[str]:
    """Return the devices of all lanes, each once, in the order of the lanes."""
    return list(dict.fromkeys(device for lane in plan.lanes for device in lane.devices))

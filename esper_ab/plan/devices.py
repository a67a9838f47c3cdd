"""Where the runs of a plan train, in words: devices, unused GPUs, and environments per device. Pure."""

from __future__ import annotations

from collections import Counter

from esper_ab.contracts.machine import Machine
from esper_ab.contracts.wording import counted, listed
from esper_ab.plan.plan import Plan
from esper_ab.settings.kind import settings_of

_GPUS_NAMED = 4  # at most; more are counted


def runs_at_once(plan: Plan) -> int:
    """Return how many runs of a plan train at the same time."""
    n_groups = len(plan.experiment.groups)
    parallel_blocks = len(plan.lanes)
    if plan.experiment.takes_turns:  # the runs of a seed take turns on one device
        parallel_blocks //= n_groups
    return min(n_groups * plan.experiment.seeds, parallel_blocks)


def where(plan: Plan, machine: Machine) -> str:
    """Say where the runs train: "on cuda:0 and cuda:1", "on 8 GPUs", "on 2 CPU cores", "sharing cuda:0"."""
    gpus = [name for name in _used(plan) if not name.startswith("cpu:")]
    lanes_on_cores = len(_used(plan)) - len(gpus)
    cores = min(lanes_on_cores, len(machine.names("cpu")))  # a machine with few cores has more lanes than cores
    place_words = gpus
    if len(gpus) > _GPUS_NAMED:
        place_words = [counted(len(gpus), "GPU")]
    if cores:
        place_words = [*place_words, counted(cores, "CPU core")]
    if runs_at_once(plan) * plan.experiment.devices_per_run > len(gpus) + cores:
        return f"sharing {listed(place_words)}"
    return f"on {listed(place_words)}"


def unused_gpus(plan: Plan, machine: Machine) -> str:
    """Count the GPUs that no run uses, with the flag or the reason: "2 GPUs unused (--devices cuda)"; "" if none."""
    used_devices = _used(plan)
    pool = plan.experiment.devices
    unused_names = [name for name in machine.names("cuda") if name not in used_devices]
    if not unused_names:
        return ""
    count = f"{counted(len(unused_names), 'GPU')} unused"
    kind = settings_of(plan.experiment.task)
    if kind.on_cores:
        return f"{count} ({kind.words} run on the CPU)"
    if any(name not in pool for name in unused_names):
        return f"{count} (--devices cuda)"
    return count


def environments_per_device(plan: Plan) -> str:
    """Count the environments that train on each device at the same time: "cuda:0: 8 environments, cuda:1: 8".

    Return "" for a trainer of the user's own, whose environments nobody knows.
    """
    if plan.experiment.trainer:
        return ""
    counts_by_lane = {run.ref.device: Counter(run.env_devices) for block in plan.blocks for run in block.runs}
    total = Counter[str]()
    for lane in plan.lanes:
        counts = counts_by_lane.get(lane.name, Counter())
        if plan.experiment.takes_turns:
            total |= counts
        else:
            total += counts
    devices = [device for device in _used(plan) if device in total]
    first_device = devices[0]
    texts = [f"{first_device}: {counted(total[first_device], 'environment')}"]
    texts += [f"{device}: {total[device]}" for device in devices[1:]]
    return ", ".join(texts)


def _used(plan: Plan) -> list[str]:
    """Return the devices of all lanes, each once, in the order of the lanes."""
    return list(dict.fromkeys(device for lane in plan.lanes for device in lane.devices))

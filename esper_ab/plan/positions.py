"""Whether the place of a run in its block, device and start order, could change what it records. Pure."""

from __future__ import annotations

from esper_ab.contracts.machine import Machine
from esper_ab.settings.experiment import ResolvedExperiment


def positions_could_matter_by(experiment: ResolvedExperiment, machine: Machine) -> str:
    """Name what could make a record depend on its lane or start order; "" where it is a function of rng paths alone.

    That takes parts of the catalogues only, whose every random number has an address, in one arithmetic that gives the
    same bits every time, on the cores of one kind of CPU. Of users' code nothing is known.
    """
    cores = {device.name: device.title for device in machine.devices if device.name.startswith("cpu:")}
    others = [name for name in experiment.devices if name not in cores]
    modes = (group.settings.reward.mode for group in experiment.groups)
    foreign = [mode for mode in modes if mode not in machine.rewards]
    if experiment.trainer:
        return "the trainer is your own"
    if experiment.task.rpartition(":")[0].endswith(".py"):
        return f"the environments of {experiment.task} are no part of a package"
    task = next((task for task in machine.tasks if task.name == experiment.task), None)
    if task is not None and not task.repeats:
        return "the environments carry state across resets" if task.carries else "the environments do not repeat"
    if ":" in experiment.outcome.removeprefix("info:"):
        return f"the outcome {experiment.outcome} is a function of a user's own"
    if foreign:
        return f"the reward {foreign[0]} is no entry of the catalogue"
    if others:
        return f"{others[0]} is no CPU core"
    if len({cores[name] for name in experiment.devices}) > 1:
        return "cores are of different kinds"
    if not experiment.arithmetic.deterministic:
        return "the arithmetic is not deterministic"
    return "the groups share a normaliser" if experiment.share_observation_norm else ""

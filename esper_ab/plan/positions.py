"""Whether the position of a run in its block (device and start order) could change its records. Pure."""

from __future__ import annotations

from esper_ab.contracts.machine import Machine
from esper_ab.settings.experiment import ResolvedExperiment


def positions_could_matter_by(experiment: ResolvedExperiment, machine: Machine) -> str:
    """Return a reason why a record could depend on its lane or start order; "" if there is no reason.

    There is no reason if the arithmetic is deterministic, all devices are CPU cores of one kind, and all parts come
    from the catalogues, which draw random numbers by rng path, in any order. Nothing is assumed about users' code.
    """
    other_devices = [name for name in experiment.devices if not name.startswith("cpu:")]
    modes = [group.settings.reward.mode for group in experiment.groups]
    foreign_modes = [mode for mode in modes if mode not in machine.rewards]
    if experiment.trainer:
        return "the trainer is your own"
    if experiment.task.rpartition(":")[0].endswith(".py"):
        return f"the environments of {experiment.task} do not come from a package"
    task = next((task for task in machine.tasks if task.name == experiment.task), None)
    if task is not None and not task.repeats:
        if task.carries:
            return "the environments carry state across resets"
        return "the environments do not repeat"
    if ":" in experiment.outcome.removeprefix("info:"):
        return f"the outcome {experiment.outcome} is a user's function"
    if foreign_modes:
        return f"the reward {foreign_modes[0]} is not in the catalogue"
    if other_devices:
        return f"{other_devices[0]} is not a CPU core"
    if len(_kinds_of_cores(experiment, machine)) > 1:
        return "the CPU cores are of different kinds"
    if not experiment.arithmetic.deterministic:
        return "the arithmetic is not deterministic"
    return ""


def _kinds_of_cores(experiment: ResolvedExperiment, machine: Machine) -> set[str]:
    """Return the kinds of the cores that a run may get; a lane beyond the number of cores shares any of them."""
    cores = {device.name: device.title for device in machine.devices if device.name.startswith("cpu:")}
    if set(experiment.devices) <= cores.keys():
        return {cores[name] for name in experiment.devices}
    return set(cores.values())

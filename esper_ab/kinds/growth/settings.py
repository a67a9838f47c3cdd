"""The task of growing networks."""

from __future__ import annotations

import math

import msgspec

from esper_ab.contracts import catalog
from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.machine import Machine, Questions, TaskFacts
from esper_ab.settings.devices import asked_gpus, resolve_devices
from esper_ab.settings.experiment import AskedExperiment, ResolvedExperiment
from esper_ab.settings.kernel import kernel_notes, resolve_kernel, untrainable_hosts
from esper_ab.settings.kind import SettingsKind
from esper_ab.settings.precision import precision_notes, resolve_precision
from esper_ab.settings.resolution import Resolution
from esper_ab.settings.schema import refuse_unknown


class GrowthKind(SettingsKind):
    """Growing networks: hosts train on GPUs or on the CPU while a policy grows them."""

    name = "growth"
    words = "growing networks"
    rewards = catalog.names("workers.kinds.growth.rewards")
    controllers = catalog.names("workers.kinds.growth.controllers")
    default_groups = ("shaped", "simplified")
    baselines = ("wait", "random")
    times_on_cpu = True
    declares_margins = True

    def ask(self, asked_experiment: AskedExperiment) -> Questions:
        """Return the usual questions, and ask about the GPUs and their speed in training hosts."""
        hosts = math.ceil(asked_experiment.n_envs / asked_experiment.devices_per_run)  # that train on one device
        return msgspec.structs.replace(super().ask(asked_experiment), gpus=asked_gpus(asked_experiment), hosts=hosts)

    def resolve(
        self, asked_experiment: AskedExperiment, machine: Machine, task: TaskFacts, eval_episodes: int
    ) -> Resolution:
        """Resolve slots, devices, precisions and kernel."""
        slots = _resolve_slots(asked_experiment, task)
        self.check_preflight(asked_experiment, machine)
        devices = resolve_devices(asked_experiment, machine, on_cores=self.on_cores)
        groups = resolve_precision(asked_experiment.groups, devices, machine)
        untrainable_words = untrainable_hosts(groups, devices, machine)
        return Resolution(
            groups=groups,
            slots=slots,
            devices=devices,
            arithmetic=resolve_kernel(asked_experiment.arithmetic, machine, untrainable_words),
            eval_episodes=eval_episodes,
        )

    def remarks(
        self, asked_experiment: AskedExperiment, resolved_experiment: ResolvedExperiment, machine: Machine
    ) -> tuple[str, ...]:
        """Return notes on precision and kernel."""
        untrainable_words = untrainable_hosts(resolved_experiment.groups, resolved_experiment.devices, machine)
        return (
            *precision_notes(asked_experiment, resolved_experiment, machine),
            *kernel_notes(asked_experiment, resolved_experiment, machine, untrainable_words),
        )


def _resolve_slots(asked_experiment: AskedExperiment, task: TaskFacts) -> tuple[str, ...]:
    slots = asked_experiment.slots or task.slots
    for slot in slots:
        refuse_unknown(f"slot in task {task.name}:", slot, task.slots)
    ordered_slots = tuple(slot for slot in task.slots if slot in slots)
    if slots != ordered_slots:
        raise UsageError(
            SettingName("slots", slots),
            ": name each once, in network order, as in ",
            SettingName("slots", ordered_slots),
        )
    return slots


KIND = GrowthKind()

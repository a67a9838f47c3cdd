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

    def ask(self, asked: AskedExperiment) -> Questions:
        """Return the usual questions, and ask about the GPUs and their speed in training hosts."""
        hosts = math.ceil(asked.n_envs / asked.devices_per_run)  # that train on one device
        return msgspec.structs.replace(super().ask(asked), gpus=asked_gpus(asked), hosts=hosts)

    def resolve(self, asked: AskedExperiment, machine: Machine, task: TaskFacts, eval_episodes: int) -> Resolution:
        """Resolve slots, devices, precisions and kernel."""
        slots = _resolve_slots(asked, task)
        self.check_preflight(asked, machine)
        devices = resolve_devices(asked, machine, on_cores=self.on_cores)
        groups = resolve_precision(asked.groups, devices, machine)
        untrainable = untrainable_hosts(groups, devices, machine)
        return Resolution(
            groups=groups,
            slots=slots,
            devices=devices,
            arithmetic=resolve_kernel(asked.arithmetic, machine, untrainable),
            eval_episodes=eval_episodes,
        )

    def remarks(self, asked: AskedExperiment, resolved: ResolvedExperiment, machine: Machine) -> tuple[str, ...]:
        """Return notes on precision and kernel."""
        untrainable = untrainable_hosts(resolved.groups, resolved.devices, machine)
        return (*precision_notes(asked, resolved, machine), *kernel_notes(asked, resolved, machine, untrainable))


def _resolve_slots(asked: AskedExperiment, task: TaskFacts) -> tuple[str, ...]:
    slots = asked.slots or task.slots
    for slot in slots:
        refuse_unknown(f"slot in task {task.name}:", slot, task.slots)
    right = tuple(slot for slot in task.slots if slot in slots)
    if slots != right:
        raise UsageError(
            SettingName("slots", slots), ": name each once, in network order, as in ", SettingName("slots", right)
        )
    return slots


KIND = GrowthKind()

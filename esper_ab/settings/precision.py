"""In which precision hosts train: what `auto` means on a machine, and what cannot be had there. Pure.

Chosen once per experiment, before anything starts, from what the machine is and never from a timing: so it is the same
for every group and every worker. A group that names its precision differs in it, as in any other setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Machine
from esper_ab.settings.experiment import AskedExperiment, Group, ResolvedExperiment

BF16_CAPABILITY = (8, 0)  # NVIDIA: bfloat16 matrix units, and bfloat16 at all in cuDNN
Precision = Literal["off", "bf16"]


def resolve_precision(groups: Sequence[Group], devices: Sequence[str], machine: Machine) -> tuple[Group, ...]:
    """Replace `auto` by what it means for `devices`; UsageError for a precision that they do not have."""
    chosen, _ = automatic(devices, machine)
    resolved = []
    for group in groups:
        growth = group.settings.growth
        if growth.amp == "auto":
            settings = msgspec.structs.replace(group.settings, growth=msgspec.structs.replace(growth, amp=chosen))
            group = msgspec.structs.replace(group, settings=settings)
        _refuse_impossible(group, devices, machine)
        resolved.append(group)
    return tuple(resolved)


def automatic(devices: Sequence[str], machine: Machine) -> tuple[Precision, str]:
    """Return what `auto` means on these devices, and why."""
    older = [name for name in devices if name.startswith("cuda") and _capability(name, machine) < BF16_CAPABILITY]
    if any(name.startswith("cpu") for name in devices):
        found = machine.cpu_bf16 or "no bf16 instructions"
        return "off", f"on a CPU ({found}) bf16 was measured slower than float32 at these sizes, docs/scaling.md"
    if older:
        return "off", f"{older[0]} has compute capability {_text(older[0], machine)}, bf16 needs 8.0"
    return "bf16", "every GPU has compute capability 8.0 or more; not measured against float32 there"


def precision_notes(asked: AskedExperiment, resolved: ResolvedExperiment, machine: Machine) -> tuple[str, ...]:
    """Tell what `auto` came to, and of half precision on a CPU without instructions for it; one sentence each."""
    notes = []
    if any(group.settings.growth.amp == "auto" for group in asked.groups):
        chosen, why = automatic(resolved.devices, machine)
        notes.append(f"--amp auto: {chosen} ({why}).")
    halves = [group.name for group in resolved.groups if group.settings.growth.amp == "bf16"]
    if halves and not machine.cpu_bf16 and any(name.startswith("cpu") for name in resolved.devices):
        notes.append(f"{', '.join(halves)}: this CPU has no bf16 instructions; results are equal, training is slower.")
    return tuple(notes)


def _refuse_impossible(group: Group, devices: Sequence[str], machine: Machine) -> None:
    amp = group.settings.growth.amp
    for name in devices:
        if amp == "fp16" and name.startswith("cpu"):
            raise UsageError(
                f"group {group.name!r}: growth.amp=fp16 on {name}: for GPUs only, a CPU takes 50 times as long; "
                "choose bf16 or off"
            )
        if amp == "bf16" and name.startswith("cuda") and _capability(name, machine) < BF16_CAPABILITY:
            raise UsageError(
                f"group {group.name!r}: growth.amp=bf16 on {name}: it has compute capability {_text(name, machine)}, "
                "bf16 needs 8.0; choose fp16 or off"
            )


def _text(name: str, machine: Machine) -> str:
    return next((device.capability for device in machine.devices if device.name == name), "")


def _capability(name: str, machine: Machine) -> tuple[int, int]:
    """Return the compute capability of a device; (0, 0) when it is not known."""
    major, _, minor = _text(name, machine).partition(".")
    return (int(major), int(minor or 0)) if major else (0, 0)

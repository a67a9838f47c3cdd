"""The precision of host training: the meaning of `auto`, and what is missing on the machine. Pure.

The precision is the same for all groups and workers, unless groups set their own, as with any setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Machine
from esper_ab.settings.experiment import AskedExperiment, Group, ResolvedExperiment


def resolve_precision(groups: Sequence[Group], devices: Sequence[str], machine: Machine) -> tuple[Group, ...]:
    """Replace `auto` by float32; UsageError for a precision that is not available on `devices`."""
    resolved_groups = []
    for group in groups:
        growth = group.settings.growth
        if growth.amp == "auto":
            settings = msgspec.structs.replace(group.settings, growth=msgspec.structs.replace(growth, amp="off"))
            group = msgspec.structs.replace(group, settings=settings)
        for name in devices:
            capability = next((device.capability for device in machine.devices if device.name == name), "")
            if growth.amp == "bf16" and name.startswith("cuda") and float(capability or 0) < 8.0:
                # Below 8.0 there are no bfloat16 matrix units, and cuDNN has no bfloat16.
                raise UsageError(
                    f"group {group.name!r}: growth.amp=bf16 needs compute capability 8.0, but {name} has {capability}; "
                    "choose growth.amp=fp16 or off"
                )
        resolved_groups.append(group)
    return tuple(resolved_groups)


def precision_notes(
    asked_experiment: AskedExperiment, resolved_experiment: ResolvedExperiment, machine: Machine
) -> Iterator[str]:
    """Yield a sentence on how `auto` was resolved, and one per half precision that makes training on a CPU slower."""
    if any(group.settings.growth.amp == "auto" for group in asked_experiment.groups):
        yield "--amp auto: off (bf16 was slower than float32 on CPUs at these sizes; no GPU was measured)."
    if not any(name.startswith("cpu") for name in resolved_experiment.devices):
        return
    if not machine.cpu_bf16 and (names := _list_groups("bf16", resolved_experiment)):
        yield f"{names}: this CPU has no bf16 instructions, so training is slower, with the same results."
    if names := _list_groups("fp16", resolved_experiment):
        yield f"{names}: growth.amp=fp16 is meant for GPUs; on a CPU, it takes several times as long as float32."


def _list_groups(precision: str, experiment: ResolvedExperiment) -> str:
    """Return the names of the groups whose hosts are trained in `precision`, for a sentence."""
    return ", ".join(group.name for group in experiment.groups if group.settings.growth.amp == precision)

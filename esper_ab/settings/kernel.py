"""What computes the policies and trains the hosts: the meaning of `auto` and `native` on a machine. Pure.

The choice is made once per experiment, before anything starts, from the request and the devices, never from a timing.
Each kernel has its own arithmetic, so all groups and workers must use the same one.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Kernel, Machine
from esper_ab.contracts.settings import Arithmetic
from esper_ab.settings.experiment import AskedArithmetic, AskedExperiment, Group, ResolvedExperiment


def resolve_kernel(asked_arithmetic: AskedArithmetic, machine: Machine, untrainable_words: str = "") -> Arithmetic:
    """Return the arithmetic with the kernel, the kernel's build, and whether the kernel or torch trains hosts.

    Raises UsageError if the requested kernel is unusable. `untrainable_words` comes from `untrainable_hosts`.
    """
    kernel = _find(asked_arithmetic.kernel, machine)
    reason = _why_unusable(kernel, machine)
    if asked_arithmetic.kernel == "torch" or (asked_arithmetic.kernel == "auto" and reason):
        return torch_alone(asked_arithmetic)
    obstacle = reason
    if untrainable_words and asked_arithmetic.kernel != "auto" and asked_arithmetic.hosts == "kernel":
        obstacle = untrainable_words
    if kernel is None or obstacle:
        raise UsageError(
            f"arithmetic.kernel={asked_arithmetic.kernel}: {obstacle}; alternatives: torch, or auto for whatever is "
            "available"
        )
    hosts = "torch" if untrainable_words else asked_arithmetic.hosts
    chosen_fields = {"kernel": kernel.name, "kernel_build": kernel.build, "hosts": hosts}
    return Arithmetic(**msgspec.structs.asdict(asked_arithmetic) | chosen_fields)


def torch_alone(asked_arithmetic: AskedArithmetic) -> Arithmetic:
    """Return the requested arithmetic with torch in place of the native kernel."""
    return Arithmetic(**msgspec.structs.asdict(asked_arithmetic) | {"kernel": "torch", "hosts": "kernel"})


def kernel_notes(
    asked_experiment: AskedExperiment,
    resolved_experiment: ResolvedExperiment,
    machine: Machine,
    untrainable_words: str = "",
) -> tuple[str, ...]:
    """Return one note on how `auto` or `native` was resolved; no note if the kernel was named."""
    if asked_experiment.arithmetic.kernel not in ("auto", "native"):
        return ()
    arithmetic = resolved_experiment.arithmetic
    built = arithmetic.kernel_build.partition(";")[0]
    if built:
        reason = f"built by {built}"
    else:
        reason = "; ".join(filter(None, lacking_kernel(machine)))
    note = f"--kernel {asked_experiment.arithmetic.kernel}: {arithmetic.kernel} ({reason})"
    if arithmetic.hosts == "torch":
        note += f"; hosts: torch ({untrainable_words or 'requested'})"
    return (f"{note}.",)


def check_kernel(planned_arithmetic: Arithmetic, machine: Machine) -> None:
    """Raise UsageError if workers on `machine` do not have the plan's kernel in the same build."""
    if planned_arithmetic.kernel == "torch":
        return
    kernel = _find(planned_arithmetic.kernel, machine)
    if kernel is None or kernel.problem:
        raise UsageError(
            f"earlier runs used kernel {planned_arithmetic.kernel}, which is unusable here: "
            f"{_why_unusable(kernel, machine)}"
        )
    if kernel.build != planned_arithmetic.kernel_build:
        raise UsageError(
            f"the build of {planned_arithmetic.kernel} here ({kernel.build}) differs from that of the plan "
            f"({planned_arithmetic.kernel_build}), and a comparison must not mix them; install the version that made "
            "the plan, "
            "with the same compiler"
        )


def lacking_kernel(machine: Machine) -> tuple[str, str]:
    """Return the reason why this machine has no native kernel, and the remedy; ("", "") if it has one."""
    if any(not kernel.problem for kernel in machine.kernels):
        return "", ""
    if not machine.kernels:
        return "there is no kernel", ""
    first_kernel = machine.kernels[0]
    return first_kernel.problem, first_kernel.remedy


def untrainable_hosts(groups: Sequence[Group], devices: Sequence[str], machine: Machine) -> str:
    """Describe the hosts that no native kernel can train, and the reason; "" if there are none.

    The precision of `groups` must already be resolved.
    """
    for name in devices:
        if not name.startswith("cpu"):
            return f"the kernel trains hosts only on the CPU, but {name} is in the pool"
    for group in groups:
        growth = group.settings.growth
        if growth.amp != "off":
            return f"group {group.name!r} has growth.amp={growth.amp}, but the kernel uses float32"
        for blueprint in growth.blueprints:
            if blueprint not in machine.native_blueprints:
                return f"blueprint {blueprint!r} of group {group.name!r} is torch code, not a chain of layers"
    return ""


def _find(asked_name: str, machine: Machine) -> Kernel | None:
    """Return the kernel requested by name or, for `auto` and `native`, the widest usable kernel; None if there is none.

    A kernel with a problem is returned if it was requested by name or if no kernel is usable.
    """
    if asked_name not in ("auto", "native"):
        return next((kernel for kernel in machine.kernels if kernel.name == asked_name), None)
    usable_kernels = [kernel for kernel in machine.kernels if not kernel.problem]
    return next(iter(usable_kernels or machine.kernels), None)


def _why_unusable(kernel: Kernel | None, machine: Machine) -> str:
    """Return the reason why the requested kernel cannot be used; "" if it can."""
    if kernel is None:
        names = ", ".join(kernel.name for kernel in machine.kernels)
        return f"the workers' processor cannot run this kernel, only {names or 'torch'}"
    if kernel.problem:
        return f"{kernel.problem}; {kernel.remedy}"
    return ""

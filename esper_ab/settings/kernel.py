"""What trains the hosts: what `auto` and `native` mean on a machine, and what cannot be had there. Pure.

Chosen once per experiment, before anything starts, from what was asked and what the devices are, never from a timing
of its own: its bits are an arithmetic of their own, which is the same for every group and every worker.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Kernel, Machine
from esper_ab.contracts.settings import Arithmetic
from esper_ab.settings.experiment import AskedArithmetic, AskedExperiment, Group, ResolvedExperiment


def resolve_kernel(
    asked: AskedArithmetic, groups: Sequence[Group], devices: Sequence[str], machine: Machine
) -> Arithmetic:
    """Name the kernel and its build; `groups` have their precision. UsageError for a kernel that cannot be had."""
    if asked.kernel == "torch" or (asked.kernel == "auto" and _obstacle(groups, devices, machine)):
        return torch_alone(asked)
    kernel = _find(asked.kernel, machine)
    if kernel is None or kernel.problem or _without_kernel(groups, devices, machine):
        obstacle = _without_kernel(groups, devices, machine) or _why_unusable(kernel, machine)
        raise UsageError(f"arithmetic.kernel={asked.kernel}: {obstacle}; torch can be had, auto takes what there is")
    return Arithmetic(**msgspec.structs.asdict(asked) | {"kernel": kernel.name, "kernel_build": kernel.build})


def torch_alone(asked: AskedArithmetic) -> Arithmetic:
    """Return the arithmetic that is asked for, without a kernel."""
    return Arithmetic(**msgspec.structs.asdict(asked) | {"kernel": "torch"})


def kernel_notes(asked: AskedExperiment, resolved: ResolvedExperiment, machine: Machine) -> tuple[str, ...]:
    """Tell what `auto` and `native` came to, in one sentence."""
    if asked.arithmetic.kernel not in ("auto", "native"):
        return ()
    arithmetic = resolved.arithmetic
    built = arithmetic.kernel_build.partition(";")[0]
    why = f"built by {built}" if built else _obstacle(resolved.groups, resolved.devices, machine)
    return (f"--kernel {asked.arithmetic.kernel}: {arithmetic.kernel} ({why}).",)


def check_kernel(planned: Arithmetic, machine: Machine) -> None:
    """UsageError unless workers on `machine` can have the kernel of a plan, built as it was."""
    if planned.kernel == "torch":
        return
    kernel = _find(planned.kernel, machine)
    if kernel is None or kernel.problem:
        raise UsageError(f"hosts were trained by {planned.kernel}: {_why_unusable(kernel, machine)}")
    if kernel.build != planned.kernel_build:
        raise UsageError(
            f"{planned.kernel} is another arithmetic here ({kernel.build}) than in the plan ({planned.kernel_build}), "
            "and no comparison may mix them; install what made the plan, with the compiler that it names"
        )


def lacking_kernel(machine: Machine) -> tuple[str, str]:
    """Return why there is no kernel on this machine, and the remedy; "" when there is one."""
    if any(not kernel.problem for kernel in machine.kernels):
        return "", ""
    return next(((kernel.problem, kernel.remedy) for kernel in machine.kernels), ("there is no kernel", ""))


def _obstacle(groups: Sequence[Group], devices: Sequence[str], machine: Machine) -> str:
    """Return why `auto` means torch; "" when it means a kernel."""
    return _without_kernel(groups, devices, machine) or "; ".join(filter(None, lacking_kernel(machine)))


def _without_kernel(groups: Sequence[Group], devices: Sequence[str], machine: Machine) -> str:
    """Return what of the experiment no kernel can train; "" for nothing."""
    gpu = next((name for name in devices if not name.startswith("cpu")), "")
    if gpu:
        return f"on {gpu} hosts are trained by torch, and one experiment has one arithmetic"
    for group in groups:
        growth = group.settings.growth
        if growth.amp != "off":
            return f"group {group.name!r} has growth.amp={growth.amp}, and the kernel is in float32"
        foreign = [name for name in growth.blueprints if name not in machine.native_blueprints]
        if foreign:
            return f"blueprint {foreign[0]!r} of group {group.name!r} is torch code and no chain of layers"
    return ""


def _find(asked: str, machine: Machine) -> Kernel | None:
    """Return the kernel that was asked for by name, or the widest that can be used; None when there is none.

    A kernel with a problem may be found when it was asked for.
    """
    if asked not in ("auto", "native"):
        return next((kernel for kernel in machine.kernels if kernel.name == asked), None)
    usable = [kernel for kernel in machine.kernels if not kernel.problem]
    return next(iter(usable or machine.kernels), None)


def _why_unusable(kernel: Kernel | None, machine: Machine) -> str:
    """Return what is wrong with the kernel that was asked for, or that there is none."""
    if kernel is not None:
        return f"{kernel.problem}; {kernel.remedy}"
    there = ", ".join(kernel.name for kernel in machine.kernels)
    return f"the workers' processor cannot run it; kernels for it: {there or 'none'}"

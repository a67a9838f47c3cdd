"""On which devices, by what and in which precision runs train: what `auto` means on a machine, what it lacks. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from esper_ab.contracts.children import Kernel, Machine
from esper_ab.contracts.errors import Setting, UsageError
from esper_ab.contracts.settings import Arithmetic
from esper_ab.settings.experiment import AskedArithmetic, AskedExperiment, Group, ResolvedExperiment

# --- devices ---------------------------------------------------------------------------------------------------------


def asked_gpus(experiment: AskedExperiment) -> tuple[str, ...]:
    """Return the GPUs that an experiment may have, as far as it names them; "cuda" is all that there are."""
    return tuple(name for name in experiment.devices or ("cuda",) if not name.startswith("cpu"))


def _cpu_lanes(experiment: AskedExperiment, machine: Machine) -> tuple[str, ...]:
    """Return the names of the lanes on the CPU: one per core, or as many as a block needs."""
    needed = len(experiment.groups) * experiment.devices_per_run
    return tuple(f"cpu:{index}" for index in range(max(needed, len(machine.names("cpu")))))


def resolve_devices(experiment: AskedExperiment, machine: Machine, *, on_cores: bool) -> tuple[str, ...]:
    """Return the pool: what was asked, or every GPU, or, without one, CPU lanes: one per core, or as a block needs.

    `on_cores`: environments and policies are there, and a GPU would be idle. UsageError for what is not there.
    """
    if not experiment.devices:
        if machine.gpu_problem and not on_cores:
            raise UsageError(f"{machine.gpu_problem}; to use the CPU all the same, say ", Setting("devices", ("cpu",)))
        gpus = () if on_cores else machine.names("cuda")
        return gpus or _cpu_lanes(experiment, machine)
    for name in experiment.devices if on_cores else ():
        if name.startswith("cuda"):
            raise UsageError(
                Setting("devices"), f": environments and policies of {experiment.task} are on the CPU, and {name} "
                "would be idle; name cores, or leave it out",
            )  # fmt: skip
    there = tuple(device.name for device in machine.devices)
    if all(name.startswith("cpu") for name in experiment.devices):
        there = _cpu_lanes(experiment, machine)  # what is planned without a word on devices can be asked for by name
    pool: list[str] = []
    for name in experiment.devices:
        named = machine.names(name) if name in ("cpu", "cuda") else (name,)
        missing = [one for one in named if one not in there] or ([] if named else [name])
        if missing:
            because = (
                machine.unusable_gpus
                or machine.gpu_problem
                or (not machine.names("cuda") and "no GPU is visible: `esper-ab doctor` looks for the reason")
            )
            because = f" ({because})" if name.startswith("cuda") and because else ""
            raise UsageError(Setting("devices"), f": no {missing[0]!r} here; there is {', '.join(there)}{because}")
        pool.extend(named)
    for name in pool:
        if pool.count(name) > 1:
            raise UsageError(
                Setting("devices"), f": {name} is there twice; several runs share a device with ",
                Setting("placement", "share"),
            )  # fmt: skip
    return tuple(pool)


# --- kernel ----------------------------------------------------------------------------------------------------------
# What computes policies and trains hosts: what `auto` and `native` mean on a machine, what cannot be had there. Pure.
#
# Chosen once per experiment, before anything starts, from what was asked and what the devices are, never from a timing
# of its own: its bits are an arithmetic of their own, which is the same for every group and every worker.


def resolve_kernel(asked: AskedArithmetic, machine: Machine, untrainable: str = "") -> Arithmetic:
    """Name the kernel and its build, and what trains hosts. UsageError for a kernel that cannot be had.

    `untrainable`: which hosts it cannot train, as `untrainable_hosts` says it.
    """
    kernel = _find(asked.kernel, machine)
    unusable = _why_unusable(kernel, machine)
    if asked.kernel == "torch" or (asked.kernel == "auto" and unusable):
        return torch_alone(asked)
    obstacle = (untrainable if asked.kernel != "auto" and asked.hosts == "kernel" else "") or unusable
    if kernel is None or obstacle:
        raise UsageError(f"arithmetic.kernel={asked.kernel}: {obstacle}; torch can be had, auto takes what there is")
    return Arithmetic(**msgspec.structs.asdict(asked) | {
        "kernel": kernel.name, "kernel_build": kernel.build, "hosts": "torch" if untrainable else asked.hosts,
    })  # fmt: skip


def torch_alone(asked: AskedArithmetic) -> Arithmetic:
    """Return the arithmetic that is asked for, without a kernel."""
    return Arithmetic(**msgspec.structs.asdict(asked) | {"kernel": "torch", "hosts": "kernel"})


def kernel_notes(
    asked: AskedExperiment, resolved: ResolvedExperiment, machine: Machine, untrainable: str = ""
) -> tuple[str, ...]:
    """Tell what `auto` and `native` came to, in one sentence."""
    if asked.arithmetic.kernel not in ("auto", "native"):
        return ()
    arithmetic = resolved.arithmetic
    built = arithmetic.kernel_build.partition(";")[0]
    why = f"built by {built}" if built else "; ".join(filter(None, lacking_kernel(machine)))
    hosts = f"; hosts: torch ({untrainable or 'asked for'})" if arithmetic.hosts == "torch" else ""
    return (f"--kernel {asked.arithmetic.kernel}: {arithmetic.kernel} ({why}){hosts}.",)


def check_kernel(planned: Arithmetic, machine: Machine) -> None:
    """UsageError unless workers on `machine` can have the kernel of a plan, built as it was."""
    if planned.kernel == "torch":
        return
    kernel = _find(planned.kernel, machine)
    if kernel is None or kernel.problem:
        raise UsageError(f"runs were computed by {planned.kernel}: {_why_unusable(kernel, machine)}")
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


def untrainable_hosts(groups: Sequence[Group], devices: Sequence[str], machine: Machine) -> str:
    """Return which hosts no kernel can train, and why; "" for none. `groups` have their precision."""
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
    """Return what is wrong with the kernel that was asked for, or that there is none; "" for nothing."""
    if kernel is not None:
        return kernel.problem and f"{kernel.problem}; {kernel.remedy}"
    there = ", ".join(kernel.name for kernel in machine.kernels)
    return f"the workers' processor cannot run it; kernels for it: {there or 'none'}"


# --- precision -------------------------------------------------------------------------------------------------------
# In which precision hosts train: what `auto` means, and what cannot be had on a machine. Pure.
#
# The same for every group and every worker. A group that names its precision differs in it, as in any other setting.


def resolve_precision(groups: Sequence[Group], devices: Sequence[str], machine: Machine) -> tuple[Group, ...]:
    """Replace `auto` by float32; UsageError for a precision that `devices` do not have."""
    resolved = []
    for group in groups:
        growth = group.settings.growth
        if growth.amp == "auto":
            settings = msgspec.structs.replace(group.settings, growth=msgspec.structs.replace(growth, amp="off"))
            group = msgspec.structs.replace(group, settings=settings)
        for name in devices:
            if growth.amp == "fp16" and name.startswith("cpu"):
                raise UsageError(
                    f"group {group.name!r}: growth.amp=fp16 on {name}: for GPUs only, a CPU takes 50 times as long; "
                    "choose bf16 or off"
                )
            capability = next((device.capability for device in machine.devices if device.name == name), "")
            if growth.amp == "bf16" and name.startswith("cuda") and float(capability or 0) < 8.0:
                # Neither bfloat16 matrix units nor bfloat16 at all in cuDNN.
                raise UsageError(
                    f"group {group.name!r}: growth.amp=bf16 on {name}: it has compute capability {capability}, bf16 "
                    "needs 8.0; choose fp16 or off"
                )
        resolved.append(group)
    return tuple(resolved)


def precision_notes(asked: AskedExperiment, resolved: ResolvedExperiment, machine: Machine) -> Iterator[str]:
    """Tell what `auto` came to, and of half precision on a CPU without instructions for it; one sentence each."""
    if any(group.settings.growth.amp == "auto" for group in asked.groups):
        yield "--amp auto: off (bf16 was slower than float32 on CPUs at these sizes; no GPU was measured)."
    halves = [group.name for group in resolved.groups if group.settings.growth.amp == "bf16"]
    if halves and not machine.cpu_bf16 and any(name.startswith("cpu") for name in resolved.devices):
        yield f"{', '.join(halves)}: this CPU has no bf16 instructions; results are equal, training is slower."

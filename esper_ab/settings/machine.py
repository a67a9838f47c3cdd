"""Resolve devices, kernel and precision on a machine, including `auto`, and report what is missing there. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from esper_ab.contracts.children import Kernel, Machine
from esper_ab.contracts.errors import Setting, UsageError
from esper_ab.contracts.settings import Arithmetic
from esper_ab.settings.experiment import AskedArithmetic, AskedExperiment, Group, ResolvedExperiment

# --- devices ---------------------------------------------------------------------------------------------------------


def asked_gpus(experiment: AskedExperiment) -> tuple[str, ...]:
    """Return the GPUs that an experiment may use, by the names in its settings; "cuda" means all GPUs."""
    return tuple(name for name in experiment.devices or ("cuda",) if not name.startswith("cpu"))


def _cpu_lanes(experiment: AskedExperiment, machine: Machine) -> tuple[str, ...]:
    """Return the names of the CPU lanes: one per core, or one per run of a block if that is more.

    For a user's trainer, which may wait more than it computes, there are as many as --max-parallel asks for. Only on
    this machine, where lanes are not bound to cores.
    """
    needed = len(experiment.groups) * experiment.devices_per_run
    if experiment.trainer and not any(device.node for device in machine.devices):
        needed = max(needed, experiment.max_parallel)
    return tuple(f"cpu:{index}" for index in range(max(needed, len(machine.names("cpu")))))


def resolve_devices(experiment: AskedExperiment, machine: Machine, *, on_cores: bool) -> tuple[str, ...]:
    """Return the device pool: the requested devices; if none are requested, all GPUs, or CPU lanes if there is no GPU.

    There are as many CPU lanes as `_cpu_lanes` says. With `on_cores`, environments and
    policies use only the CPU. Raises UsageError for a device that is missing or would be idle.
    """
    if not experiment.devices:
        if machine.gpu_problem and not on_cores:
            raise UsageError(f"{machine.gpu_problem}; to use the CPU anyway, add ", Setting("devices", ("cpu",)))
        gpus = () if on_cores else machine.names("cuda")
        return gpus or _cpu_lanes(experiment, machine)
    for name in experiment.devices if on_cores else ():
        if name.startswith("cuda"):
            raise UsageError(
                Setting("devices"), f": environments and policies of {experiment.task} run on the CPU, so {name} "
                "would be idle; leave it out, or name cores",
            )  # fmt: skip
    there = tuple(device.name for device in machine.devices)
    if all(name.startswith("cpu") for name in experiment.devices):
        there = _cpu_lanes(experiment, machine)  # lanes of a default plan can also be requested by name
    pool: list[str] = []
    for name in experiment.devices:
        named = machine.names(name) if name in ("cpu", "cuda") else (name,)
        missing = [one for one in named if one not in there] or ([] if named else [name])
        if missing:
            because = (
                machine.unusable_gpus
                or machine.gpu_problem
                or (not machine.names("cuda") and "no GPU is visible: run `esper-ab doctor` to find out why")
            )
            because = f" ({because})" if name.startswith("cuda") and because else ""
            raise UsageError(Setting("devices"), f": no {missing[0]!r} here; available: {', '.join(there)}{because}")
        pool.extend(named)
    for name in pool:
        if pool.count(name) > 1:
            raise UsageError(
                Setting("devices"), f": {name} is named twice; if several runs should share a device, use ",
                Setting("placement", "share"),
            )  # fmt: skip
    return tuple(pool)


# --- kernel ----------------------------------------------------------------------------------------------------------
# What computes the policies and trains the hosts: the meaning of `auto` and `native` on a machine. Pure.
#
# The choice is made once per experiment, before anything starts, from the request and the devices, never from a timing.
# Each kernel has its own arithmetic, so all groups and workers must use the same one.


def resolve_kernel(asked: AskedArithmetic, machine: Machine, untrainable: str = "") -> Arithmetic:
    """Return the arithmetic with the kernel, the kernel's build, and whether the kernel or torch trains hosts.

    Raises UsageError if the requested kernel is unusable. `untrainable` comes from `untrainable_hosts`.
    """
    kernel = _find(asked.kernel, machine)
    unusable = _why_unusable(kernel, machine)
    if asked.kernel == "torch" or (asked.kernel == "auto" and unusable):
        return torch_alone(asked)
    obstacle = (untrainable if asked.kernel != "auto" and asked.hosts == "kernel" else "") or unusable
    if kernel is None or obstacle:
        raise UsageError(
            f"arithmetic.kernel={asked.kernel}: {obstacle}; alternatives: torch, or auto for whatever is available"
        )
    return Arithmetic(**msgspec.structs.asdict(asked) | {
        "kernel": kernel.name, "kernel_build": kernel.build, "hosts": "torch" if untrainable else asked.hosts,
    })  # fmt: skip


def torch_alone(asked: AskedArithmetic) -> Arithmetic:
    """Return the requested arithmetic with torch in place of the native kernel."""
    return Arithmetic(**msgspec.structs.asdict(asked) | {"kernel": "torch", "hosts": "kernel"})


def kernel_notes(
    asked: AskedExperiment, resolved: ResolvedExperiment, machine: Machine, untrainable: str = ""
) -> tuple[str, ...]:
    """Return one note on how `auto` or `native` was resolved; no note if the kernel was named."""
    if asked.arithmetic.kernel not in ("auto", "native"):
        return ()
    arithmetic = resolved.arithmetic
    built = arithmetic.kernel_build.partition(";")[0]
    why = f"built by {built}" if built else "; ".join(filter(None, lacking_kernel(machine)))
    hosts = f"; hosts: torch ({untrainable or 'requested'})" if arithmetic.hosts == "torch" else ""
    return (f"--kernel {asked.arithmetic.kernel}: {arithmetic.kernel} ({why}){hosts}.",)


def check_kernel(planned: Arithmetic, machine: Machine) -> None:
    """Raise UsageError if workers on `machine` do not have the plan's kernel in the same build."""
    if planned.kernel == "torch":
        return
    kernel = _find(planned.kernel, machine)
    if kernel is None or kernel.problem:
        raise UsageError(
            f"earlier runs used kernel {planned.kernel}, which is unusable here: {_why_unusable(kernel, machine)}"
        )
    if kernel.build != planned.kernel_build:
        raise UsageError(
            f"the build of {planned.kernel} here ({kernel.build}) differs from that of the plan "
            f"({planned.kernel_build}), "
            "and a comparison must not mix them; install the version that made the plan, with the same compiler"
        )


def lacking_kernel(machine: Machine) -> tuple[str, str]:
    """Return the reason why this machine has no native kernel, and the remedy; ("", "") if it has one."""
    if any(not kernel.problem for kernel in machine.kernels):
        return "", ""
    return next(((kernel.problem, kernel.remedy) for kernel in machine.kernels), ("there is no kernel", ""))


def untrainable_hosts(groups: Sequence[Group], devices: Sequence[str], machine: Machine) -> str:
    """Describe the hosts that no native kernel can train, and the reason; "" if there are none.

    The precision of `groups` must already be resolved.
    """
    gpu = next((name for name in devices if not name.startswith("cpu")), "")
    if gpu:
        return f"the kernel trains hosts only on the CPU, but {gpu} is in the pool"
    for group in groups:
        growth = group.settings.growth
        if growth.amp != "off":
            return f"group {group.name!r} has growth.amp={growth.amp}, but the kernel uses float32"
        foreign = [name for name in growth.blueprints if name not in machine.native_blueprints]
        if foreign:
            return f"blueprint {foreign[0]!r} of group {group.name!r} is torch code, not a chain of layers"
    return ""


def _find(asked: str, machine: Machine) -> Kernel | None:
    """Return the kernel requested by name or, for `auto` and `native`, the widest usable kernel; None if there is none.

    A kernel with a problem is returned if it was requested by name or if no kernel is usable.
    """
    if asked not in ("auto", "native"):
        return next((kernel for kernel in machine.kernels if kernel.name == asked), None)
    usable = [kernel for kernel in machine.kernels if not kernel.problem]
    return next(iter(usable or machine.kernels), None)


def _why_unusable(kernel: Kernel | None, machine: Machine) -> str:
    """Return the reason why the requested kernel cannot be used; "" if it can."""
    if kernel is not None:
        return kernel.problem and f"{kernel.problem}; {kernel.remedy}"
    there = ", ".join(kernel.name for kernel in machine.kernels)
    return f"the workers' processor cannot run this kernel, only {there or 'torch'}"


# --- precision -------------------------------------------------------------------------------------------------------
# The precision of host training: the meaning of `auto`, and what is missing on the machine. Pure.
#
# The precision is the same for all groups and workers, unless groups set their own, as with any setting.


def resolve_precision(groups: Sequence[Group], devices: Sequence[str], machine: Machine) -> tuple[Group, ...]:
    """Replace `auto` by float32; UsageError for a precision that is not available on `devices`."""
    resolved = []
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
        resolved.append(group)
    return tuple(resolved)


def precision_notes(asked: AskedExperiment, resolved: ResolvedExperiment, machine: Machine) -> Iterator[str]:
    """Yield a sentence on how `auto` was resolved, and one per half precision that makes training on a CPU slower."""
    if any(group.settings.growth.amp == "auto" for group in asked.groups):
        yield "--amp auto: off (bf16 was slower than float32 on CPUs at these sizes; no GPU was measured)."
    if not any(name.startswith("cpu") for name in resolved.devices):
        return
    if not machine.cpu_bf16 and (names := _trained_in("bf16", resolved)):
        yield f"{names}: this CPU has no bf16 instructions, so training is slower, with the same results."
    if names := _trained_in("fp16", resolved):
        yield f"{names}: growth.amp=fp16 is meant for GPUs; on a CPU, it takes several times as long as float32."


def _trained_in(precision: str, experiment: ResolvedExperiment) -> str:
    """Return the names of the groups whose hosts are trained in `precision`, for a sentence."""
    return ", ".join(group.name for group in experiment.groups if group.settings.growth.amp == precision)

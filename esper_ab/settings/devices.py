"""Which devices an experiment uses: the meaning of `auto`, `cuda` and `cpu` on a machine. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.machine import Machine
from esper_ab.settings.experiment import AskedExperiment


def asked_gpus(experiment: AskedExperiment) -> tuple[str, ...]:
    """Return the GPUs that an experiment may use, by the names in its settings; "cuda" means all GPUs."""
    asked_devices = experiment.devices or ("cuda",)
    return tuple(name for name in asked_devices if not name.startswith("cpu"))


def _cpu_lanes(experiment: AskedExperiment, machine: Machine) -> tuple[str, ...]:
    """Return the names of the CPU lanes: one per core, or one per run of a block if that is more.

    For a user's trainer, which may wait more than it computes, there are as many as --max-parallel asks for, but only
    on this machine, where lanes are not bound to cores.
    """
    needed_lanes = len(experiment.groups) * experiment.devices_per_run
    if experiment.trainer and not any(device.node for device in machine.devices):
        needed_lanes = max(needed_lanes, experiment.max_parallel)
    n_lanes = max(needed_lanes, len(machine.names("cpu")))
    return tuple(f"cpu:{index}" for index in range(n_lanes))


def resolve_devices(experiment: AskedExperiment, machine: Machine, *, on_cores: bool) -> tuple[str, ...]:
    """Return the device pool: the requested devices; if none are requested, all GPUs, or CPU lanes if there is no GPU.

    There are as many CPU lanes as `_cpu_lanes` says. With `on_cores`, environments and policies use only the CPU.
    Raises UsageError for a device that is missing or would be idle.
    """
    if not experiment.devices:
        if machine.gpu_problem and not on_cores:
            raise UsageError(f"{machine.gpu_problem}; to use the CPU anyway, add ", SettingName("devices", ("cpu",)))
        gpus = () if on_cores else machine.names("cuda")
        return gpus or _cpu_lanes(experiment, machine)
    if on_cores:
        _refuse_gpus(experiment)
    available_devices = tuple(device.name for device in machine.devices)
    if all(name.startswith("cpu") for name in experiment.devices):
        available_devices = _cpu_lanes(experiment, machine)  # lanes of a default plan can also be requested by name
    pool: list[str] = []
    for name in experiment.devices:
        named_devices = machine.names(name) if name in ("cpu", "cuda") else (name,)
        for device in named_devices or (name,):
            if device not in available_devices:
                _refuse_missing(device, available_devices, machine)
        pool.extend(named_devices)
    for name in pool:
        if pool.count(name) > 1:
            raise UsageError(
                SettingName("devices"),
                f": {name} is named twice; if several runs should share a device, use ",
                SettingName("placement", "share"),
            )
    return tuple(pool)


def _refuse_missing(device: str, available_devices: Sequence[str], machine: Machine) -> None:
    """Raise UsageError for a requested device that the machine does not have."""
    missing_words = f": no {device!r} here; available: {', '.join(available_devices)}"
    reason = _why_no_gpu(machine)
    if device.startswith("cuda") and reason:
        missing_words += f" ({reason})"
    raise UsageError(SettingName("devices"), missing_words)


def _refuse_gpus(experiment: AskedExperiment) -> None:
    """Raise UsageError if a GPU is requested that would be idle."""
    for name in experiment.devices:
        if name.startswith("cuda"):
            raise UsageError(
                SettingName("devices"),
                f": environments and policies of {experiment.task} run on the CPU, so {name} "
                "would be idle; leave it out, or name cores",
            )


def _why_no_gpu(machine: Machine) -> str:
    """Return the reason why a GPU may be missing; "" if all GPUs of the machine are usable."""
    if machine.unusable_gpus or machine.gpu_problem:
        return machine.unusable_gpus or machine.gpu_problem
    if not machine.names("cuda"):
        return "no GPU is visible: run `esper-ab doctor` to find out why"
    return ""

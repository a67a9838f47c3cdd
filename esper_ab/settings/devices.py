"""Which devices an experiment runs on. Pure."""

from __future__ import annotations

from esper_ab.contracts.children import Machine
from esper_ab.contracts.errors import Setting, UsageError
from esper_ab.settings.experiment import AskedExperiment


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

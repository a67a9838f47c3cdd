"""GPUs as seen by the driver and by torch. Texts of nvidia-smi and the preflight's answer in, diagnoses out."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator

import msgspec

from esper_ab.contracts.gpu_names import is_beyond_one_instance
from esper_ab.contracts.machine import Machine
from esper_ab.health.diagnosis import Diagnosis, ok, problem, warning

_TIMEOUT_S = 20.0


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of nvidia-smi; empty if there is none."""

    version: str = ""
    cuda: str = ""  # the newest CUDA it supports


def device_diagnoses(machine: Machine) -> Iterator[Diagnosis]:
    """Check the GPUs of this machine, or report that there are none."""
    yield from gpu_diagnoses(machine, ask_driver(), os.environ.get("CUDA_VISIBLE_DEVICES"))


def ask_driver() -> Driver:
    """Query the driver; the answer is empty if there is no driver."""
    try:
        process = subprocess.run(["nvidia-smi"], capture_output=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return Driver()
    return parse_driver(process.stdout.decode(errors="replace"))


def parse_driver(screen: str) -> Driver:
    """Parse the plain output of nvidia-smi."""
    return Driver(version=_read_version("Driver", screen), cuda=_read_version("CUDA", screen))


def _read_version(driver_part: str, screen: str) -> str:
    match = re.search(rf"{driver_part} Version:\s*([0-9.]+)", screen)
    return match[1] if match else ""


def gpu_diagnoses(machine: Machine, driver: Driver, pool: str | None) -> Iterator[Diagnosis]:
    """Check GPUs against the driver and torch. `pool`: CUDA_VISIBLE_DEVICES, the devices an experiment may use."""
    gpus = [device for device in machine.devices if device.name.startswith("cuda:")]
    cuda = f"CUDA {machine.cuda_build}" if machine.cuda_build else "for the CPU"
    build = f"torch {machine.torch_version}, {cuda}"
    if machine.gpu_problem:
        if is_beyond_one_instance(pool):
            mend = "name a single instance"
        else:
            mend = "install a torch build for this driver's CUDA"
        yield problem("gpu", machine.gpu_problem, f"{mend}, or use --devices cpu")
    elif gpus:
        yield ok("gpu", ", ".join(f"{gpu.name} {gpu.title} {gpu.memory_bytes / 2**30:.0f} GiB" for gpu in gpus))
    else:
        pool_words = " (CUDA_VISIBLE_DEVICES is empty)" if pool in ("", "-1") else ""
        yield ok("gpu", f"none{pool_words}: experiments run on CPU cores")
    if gpus and machine.unusable_gpus:
        yield warning("gpu", machine.unusable_gpus, "the others are used; choose GPUs with --devices")
    yield _check_driver(build, machine.cuda_build, driver)
    if len({gpu.title for gpu in gpus}) > 1:
        yield warning("gpu", "different kinds of GPU", "choose one kind with --devices; devices are counterbalanced")
    if pool:
        yield ok("gpu pool", f"CUDA_VISIBLE_DEVICES={pool}")
    if any("MIG" in gpu.title for gpu in gpus):
        yield warning(
            "mig",
            "MIG is on: a process sees one instance, which torch counts as one GPU",
            "use one instance per experiment (CUDA_VISIBLE_DEVICES=MIG-… --placement share), or switch MIG off",
        )


def _check_driver(build: str, cuda_build: str, driver: Driver) -> Diagnosis:
    """Check that the build's CUDA major version is not newer than the driver's; a newer minor version is compatible."""
    if not driver.version:
        return ok("torch", f"{build}; no NVIDIA driver")
    newest_words = f"CUDA {driver.cuda} at most" if driver.cuda else "CUDA unknown"
    state_words = f"{build}; driver {driver.version}, {newest_words}"
    if cuda_build and driver.cuda and _major(cuda_build) > _major(driver.cuda):
        return problem("torch", state_words, "update the driver, or install a torch build for an older CUDA")
    return ok("torch", state_words)


def _major(version: str) -> int:
    return int(version.split(".")[0])

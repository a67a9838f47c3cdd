"""Findings about GPUs, from what the drivers of machines that are not here have printed."""

from __future__ import annotations

import msgspec

from esper_ab.contracts.machine import Device, Machine
from esper_ab.health import devices

_CPU = Machine(
    torch_version="2.7.0", cuda_build="", devices=(Device(name="cpu:0", title="", uuid="", memory_bytes=1),),
    rewards=(), controllers=(), blueprints=(), tasks=(), multiply_adds_per_s=1.0, user_rewards=(), task_problem="",
    gpu_problem="",
)  # fmt: skip
_GPUS = msgspec.structs.replace(
    _CPU, cuda_build="12.8",
    devices=tuple(Device(name=f"cuda:{i}", title="NVIDIA H200", uuid="", memory_bytes=141 << 30) for i in range(2)),
)  # fmt: skip
_SCREEN = "| NVIDIA-SMI 570.12    Driver Version: 570.12    CUDA Version: 12.8 |"


def levels(machine: Machine, driver: devices.Driver, pool: str | None = None) -> dict[str, str]:
    return {diagnosis.topic: diagnosis.level for diagnosis in devices.gpu_diagnoses(machine, driver, pool)}


def test_gpus_that_work() -> None:
    driver = devices.parse_driver(_SCREEN)
    assert (driver.version, driver.cuda) == ("570.12", "12.8")
    assert set(levels(_GPUS, driver, "0,1").values()) == {"ok"}


def test_no_gpu_is_no_problem() -> None:
    assert levels(_CPU, devices.parse_driver("")) == {"gpu": "ok", "torch": "ok"}
    (gpu, _) = devices.gpu_diagnoses(_CPU, devices.Driver(), "")
    assert "CUDA_VISIBLE_DEVICES is empty" in gpu.what


def test_a_gpu_that_torch_cannot_use_is_a_problem() -> None:
    machine = msgspec.structs.replace(_CPU, gpu_problem="this machine has an NVIDIA GPU, but …")
    assert levels(machine, devices.parse_driver(""))["gpu"] == "problem"
    newer = msgspec.structs.replace(_GPUS, cuda_build="13.0")
    assert levels(newer, devices.parse_driver(_SCREEN))["torch"] == "problem"


def test_mig() -> None:
    instance = Device(name="cuda:0", title="NVIDIA A100-SXM4-80GB MIG 1g.10gb", uuid="", memory_bytes=10 << 30)
    machine = msgspec.structs.replace(_GPUS, devices=(instance,))
    assert levels(machine, devices.parse_driver(_SCREEN))["mig"] == "warning"


def test_a_gpu_that_was_tried_in_vain_is_a_warning_beside_those_that_work() -> None:
    machine = msgspec.structs.replace(_GPUS, unusable_gpus="GPUs requested: 3, usable: 2; not cuda:2 (out of memory)")
    driver = devices.parse_driver(_SCREEN)
    (told,) = [one for one in devices.gpu_diagnoses(machine, driver, None) if one.level == "warning"]
    assert told.what == machine.unusable_gpus


def test_of_several_instances_one_is_to_be_named() -> None:
    machine = msgspec.structs.replace(_CPU, gpu_problem="CUDA_VISIBLE_DEVICES=MIG-a,MIG-b names …")
    (gpu, *_) = devices.gpu_diagnoses(machine, devices.Driver(), "MIG-a,MIG-b")
    assert (gpu.level, gpu.remedy) == ("problem", "name one instance, or say --devices cpu")

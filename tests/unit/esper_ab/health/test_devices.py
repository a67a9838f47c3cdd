"""Findings about GPUs, from the output of drivers of other machines."""

import pytest
from msgspec.structs import replace
from support.plans import requests

from esper_ab.contracts.machine import Device
from esper_ab.health import devices

_CPU = requests.machine()
_GPUS = requests.machine(gpus=2, cuda_build="12.8")
_CANNOT = {"gpu_problem": "this machine has an NVIDIA GPU, but …"}
_MIG = Device(name="cuda:0", title="NVIDIA A100-SXM4-80GB MIG 1g.10gb", uuid="", memory_bytes=10 << 30)
_SCREEN = "| NVIDIA-SMI 570.12    Driver Version: 570.12    CUDA Version: 12.8 |"


@pytest.mark.parametrize(
    ("machine", "change", "screen", "pool", "worst_levels"),
    [
        (_GPUS, {}, _SCREEN, "0,1", {}),
        (_CPU, {}, "", None, {}),
        (_CPU, _CANNOT, "", None, {"gpu": "problem"}),
        (_CPU, {"gpu_problem": "it names …"}, "", "MIG-a,MIG-b", {"gpu": "problem"}),
        (_GPUS, {"cuda_build": "13.0"}, _SCREEN, None, {"torch": "problem"}),
        (_GPUS, {"devices": (_MIG,)}, _SCREEN, None, {"mig": "warning"}),
        (_GPUS, {"unusable_gpus": "usable: 2; not cuda:2"}, _SCREEN, None, {"gpu": "warning"}),
    ],
)
def test_the_doctor_reports_only_gpus_with_problems(machine, change, screen, pool, worst_levels):
    driver = devices.parse_driver(screen)
    diagnoses = devices.gpu_diagnoses(replace(machine, **change), driver, pool)
    assert {diagnosis.topic: diagnosis.level for diagnosis in diagnoses if diagnosis.level != "ok"} == worst_levels


def test_the_doctor_reports_the_driver_and_the_gpu_environment():
    driver = devices.parse_driver(_SCREEN)
    assert (driver.version, driver.cuda) == ("570.12", "12.8")
    (gpu, _) = devices.gpu_diagnoses(_CPU, devices.Driver(), "")
    assert "CUDA_VISIBLE_DEVICES is empty" in gpu.what
    (gpu, *_) = devices.gpu_diagnoses(replace(_CPU, **_CANNOT), driver, "MIG-a,MIG-b")
    assert gpu.remedy == "name a single instance, or use --devices cpu"

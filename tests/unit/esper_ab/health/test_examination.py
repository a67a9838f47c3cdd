"""Findings about limits of a process."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from esper_ab.contracts.children import Device, Machine
from esper_ab.health import examination
from esper_ab.health.examination import Mount

LEAST_BYTES = 3 << 29


@pytest.mark.parametrize(("soft", "levels"), [
    ((20000, 4096, -1), ["ok", "ok"]), ((256, 64, LEAST_BYTES), ["warning", "warning"]),
    ((-1, -1, LEAST_BYTES - 1), ["ok", "ok", "problem"]),
])  # fmt: skip
def test_limits(soft: tuple[int, int, int], levels: list[str]) -> None:
    assert [diagnosis.level for diagnosis in examination.limits(LEAST_BYTES, *soft)] == levels


# Findings about GPUs, from what the drivers of machines that are not here have printed.


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


def levels(machine: Machine, driver: examination.Driver, pool: str | None = None) -> dict[str, str]:
    return {diagnosis.topic: diagnosis.level for diagnosis in examination.gpu_diagnoses(machine, driver, pool)}


def test_gpus_that_work() -> None:
    driver = examination.parse_driver(_SCREEN)
    assert (driver.version, driver.cuda) == ("570.12", "12.8")
    assert set(levels(_GPUS, driver, "0,1").values()) == {"ok"}


def test_no_gpu_is_no_problem() -> None:
    assert levels(_CPU, examination.parse_driver("")) == {"gpu": "ok", "torch": "ok"}
    (gpu, _) = examination.gpu_diagnoses(_CPU, examination.Driver(), "")
    assert "CUDA_VISIBLE_DEVICES is empty" in gpu.what


def test_a_gpu_that_torch_cannot_use_is_a_problem() -> None:
    machine = msgspec.structs.replace(_CPU, gpu_problem="this machine has an NVIDIA GPU, but …")
    assert levels(machine, examination.parse_driver(""))["gpu"] == "problem"
    newer = msgspec.structs.replace(_GPUS, cuda_build="13.0")
    assert levels(newer, examination.parse_driver(_SCREEN))["torch"] == "problem"


def test_mig() -> None:
    instance = Device(name="cuda:0", title="NVIDIA A100-SXM4-80GB MIG 1g.10gb", uuid="", memory_bytes=10 << 30)
    machine = msgspec.structs.replace(_GPUS, devices=(instance,))
    assert levels(machine, examination.parse_driver(_SCREEN))["mig"] == "warning"


def test_a_gpu_that_was_tried_in_vain_is_a_warning_beside_those_that_work() -> None:
    machine = msgspec.structs.replace(_GPUS, unusable_gpus="GPUs requested: 3, usable: 2; not cuda:2 (out of memory)")
    driver = examination.parse_driver(_SCREEN)
    (told,) = [one for one in examination.gpu_diagnoses(machine, driver, None) if one.level == "warning"]
    assert told.what == machine.unusable_gpus


def test_of_several_instances_one_is_to_be_named() -> None:
    machine = msgspec.structs.replace(_CPU, gpu_problem="CUDA_VISIBLE_DEVICES=MIG-a,MIG-b names …")
    (gpu, *_) = examination.gpu_diagnoses(machine, examination.Driver(), "MIG-a,MIG-b")
    assert (gpu.level, gpu.remedy) == ("problem", "name one instance, or say --devices cpu")


# Findings about file systems, from mounts of machines that are not here.


_MOUNTS = [
    Mount("/", "ext4", "rw,relatime"), Mount("/home", "nfs4", "rw,vers=4.2"), Mount("/scratch", "lustre", "rw,flock"),
    Mount("/scratch/old", "lustre", "rw"), Mount("/mnt/my share", "cifs", "rw"), Mount("/mnt/far", "fuse.sshfs", "rw"),
    Mount("/dev/shm", "tmpfs", "rw"), Mount("/n", "nfs", "rw,nolock"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("folder", "kind", "level", "words"),
    [
        ("/var/runs", "ext4", "ok", "local"),
        ("/homework", "ext4", "ok", "local"),
        ("/home/me/runs", "nfs4", "warning", "every fsync waits"),
        ("/scratch/runs", "lustre", "warning", "over a network"),
        ("/scratch/old/runs", "lustre", "problem", "cannot be locked"),
        ("/mnt/my share/runs", "cifs", "warning", "over a network"),
        ("/mnt/far", "fuse.sshfs", "warning", "in user space"),
        ("/dev/shm/x", "tmpfs", "warning", "gone after a restart"),
        ("/n/runs", "nfs", "warning", "not seen on other machines"),
    ],
)
def test_file_systems(folder: str, kind: str, level: str, words: str) -> None:
    mount = examination.mount_of(Path(folder), _MOUNTS)
    found = examination.file_system(Path(folder), mount)
    assert (mount.fstype, found.level) == (kind, level)
    assert words in found.what
    assert bool(found.remedy) == (level != "ok")


def test_a_later_mount_on_the_same_place_covers_the_earlier() -> None:
    mounts = [Mount("/x", "ext4", "rw"), Mount("/x", "nfs", "rw")]
    assert examination.mount_of(Path("/x/y"), mounts).fstype == "nfs"


def test_room_lock_and_sync_are_tried_and_nothing_stays(tmp_path: Path) -> None:
    found = {diagnosis.topic: diagnosis for diagnosis in examination.storage_diagnoses(tmp_path / "runs" / "deep", 1)}
    assert {"file system", "disk", "lock", "fsync"} <= set(found)
    assert found["lock"].level == "ok"
    assert list(tmp_path.iterdir()) == []
    full = {diagnosis.topic: diagnosis.level for diagnosis in examination.storage_diagnoses(tmp_path, 1 << 62)}
    assert full["disk"] == "problem"
    (tmp_path / "file").touch()
    (only,) = examination.storage_diagnoses(tmp_path / "file", 1)
    assert (only.topic, only.level) == ("run folder", "problem")


def test_slow_synchronisation() -> None:
    assert examination.sync_time([0.001] * 5 + [3.0]).level == "ok"
    slow = examination.sync_time([0.08] * 5)
    assert (slow.level, "median 80 ms" in slow.what) == ("warning", True)
